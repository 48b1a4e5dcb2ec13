/** Values as OTLP's JSON writes them: opentelemetry-proto, `common.proto` and the specification's "JSON Protobuf Encoding". */

export type Value = { stringValue: string } | { intValue: number };
export type Attribute = { key: string; value: Value };
/** An attribute without a value is left out: nothing is invented. */
export type Facts = Readonly<Record<string, string | number | null | undefined>>;

export function attributesOf(facts: Facts): Attribute[] {
  return Object.entries(facts).flatMap(([key, fact]) =>
    fact === null || fact === undefined
      ? []
      : [{ key, value: typeof fact === 'number' ? { intValue: fact } : { stringValue: fact } }],
  );
}

/** Whole nanoseconds since the Unix epoch, of microseconds: 64 bits stand as text. */
export function nanoseconds(microseconds: number): string {
  return String(BigInt(Math.round(microseconds)) * 1000n);
}
