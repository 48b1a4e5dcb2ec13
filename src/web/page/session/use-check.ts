/** What `check` says of a session, by frame; of one that is recorded again and again. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { CheckAnswer, FateView, FindingView } from '../../api.ts';
import { source } from '../shell/source.ts';

export type Checked = {
  /** By `seq`. */
  findings: ReadonlyMap<number, readonly FindingView[]>;
  /** What became of a message that has no answer of use, by `seq` and number in the frame. */
  fateOf(seq: number, n: number): FateView | undefined;
  /** How many findings there are, also of those that no frame is named by; null: that is not known. */
  found: number | null;
};

/** Between two checks of a session that is recorded: so many milliseconds, and so many times what the last one took. */
const REST_MS = 1000;
const REST_TIMES = 4;

/** Null asks for nothing; another `version` asks again, and what is known stays till then. */
export function useCheck(id: string, version: string | null): Checked {
  const [known, setKnown] = useState<{ of: string; answer: CheckAnswer } | null>(null);
  const wanted = useRef(version);
  wanted.current = version;
  const wake = useRef(() => {});
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let checked: string | null = null;
    let isBusy = false;
    const goOn = async () => {
      if (isBusy || wanted.current === null || wanted.current === checked) return;
      isBusy = true;
      checked = wanted.current;
      const began = performance.now();
      try {
        const path = `sessions/${encodeURIComponent(id)}/check`;
        setKnown({ of: id, answer: await source().json<CheckAnswer>(path, abort.signal) });
      } catch {
        // The rows stay without marks; the screen of findings says why.
      }
      if (abort.signal.aborted) return;
      const rest = Math.max(REST_MS, REST_TIMES * (performance.now() - began));
      timer = setTimeout(() => {
        isBusy = false;
        void goOn();
      }, rest);
    };
    wake.current = () => void goOn();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [id]);
  useEffect(() => wake.current(), [id, version]);
  const answer = known?.of === id ? known.answer : null;
  return useMemo(() => {
    const findings = new Map<number, FindingView[]>();
    for (const finding of answer?.findings ?? [])
      if (finding.seq !== null) findings.set(finding.seq, [...(findings.get(finding.seq) ?? []), finding]);
    const fates = new Map(answer?.fates.map((fate) => [`${fate.seq}.${fate.n}`, fate]));
    return {
      findings,
      fateOf: (seq, n) => fates.get(`${seq}.${n}`),
      found: answer?.rules.reduce((sum, { count }) => sum + count, 0) ?? null,
    };
  }, [answer]);
}
