/** The thread that compiles recorded schemas and validates recorded values: see schemas.ts. */
import { type MessagePort, workerData } from 'node:worker_threads';
import { Ajv, type AnySchema, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Question, Verdict } from './schemas.ts';

/** Formats are annotations in JSON Schema 2020-12, and unknown keywords are allowed. */
const OPTIONS = { strict: false, validateFormats: false, allErrors: false, logger: false } as const;

/** The schemas of schemas take long to compile: once for each dialect is enough. */
const DIALECTS = {
  'draft-07': { Validator: Ajv, judge: new Ajv(OPTIONS) },
  '2020-12': { Validator: Ajv2020, judge: new Ajv2020(OPTIONS) },
};

const { port, bell } = workerData as { port: MessagePort; bell: Int32Array };

const compiled = new Map<string, ValidateFunction | Verdict>();

port.on('message', (question: Question) => {
  port.postMessage(answerTo(question));
  ring();
});

ring();

/** Wakes the thread that waits for our start or for an answer. */
function ring(): void {
  Atomics.store(bell, 0, 1);
  Atomics.notify(bell, 0);
}

function answerTo({ schema, value }: Question): Verdict {
  const validate = compiled.get(schema) ?? compile(schema);
  compiled.set(schema, validate);
  if (typeof validate !== 'function') return validate;
  if (value === null) return { kind: 'fine' };
  try {
    return validate(JSON.parse(value)) ? { kind: 'fine' } : { kind: 'broken', why: whyOf(validate.errors) };
  } catch (error) {
    return { kind: 'unchecked', why: (error as Error).message };
  }
}

/** The dialect is 2020-12 unless the schema names another (specification 2025-11-25, basic, "Schema Dialect"). */
function compile(text: string): ValidateFunction | Verdict {
  const schema = JSON.parse(text) as AnySchema & { $schema?: unknown };
  const dialect = String(schema.$schema ?? 'https://json-schema.org/draft/2020-12/schema').replace(/#$/, '');
  const isOld = /^https?:\/\/json-schema\.org\/draft-07\/schema$/.test(dialect);
  if (!isOld && dialect !== 'https://json-schema.org/draft/2020-12/schema')
    return { kind: 'unchecked', why: `the dialect ${JSON.stringify(dialect)} is not known here` };
  const { Validator, judge } = DIALECTS[isOld ? 'draft-07' : '2020-12'];
  try {
    if (judge.validateSchema(schema) !== true)
      return { kind: 'broken', why: `schema is invalid: ${judge.errorsText()}` };
    // Each schema has a world of its own: an `$id` that two of them have is no conflict.
    return new Validator({ ...OPTIONS, validateSchema: false }).compile(schema);
  } catch (error) {
    const { message } = error as Error;
    const isRemote = (error as { missingRef?: string }).missingRef !== undefined;
    // Nested too deeply for the validator, which says nothing about the schema.
    const isDeep = error instanceof RangeError;
    return { kind: isRemote || isDeep ? 'unchecked' : 'broken', why: message };
  }
}

function whyOf(errors: ErrorObject[] | null | undefined): string {
  const [first] = errors ?? [];
  if (first === undefined) return 'it does not';
  const name = first.params['additionalProperty'] ?? first.params['unevaluatedProperty'];
  const what = name === undefined ? '' : ` (${JSON.stringify(name)})`;
  return `${first.instancePath === '' ? 'the whole' : first.instancePath} ${first.message ?? 'is wrong'}${what}`;
}
