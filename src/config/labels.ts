import { TapedeckError } from '../errors.ts';

type Labels = [key: string, value: string][];

/**
 * The labels of a recording, with those that the environment has beside them: `TAPEDECK_LABELS` (`key=value,…`), as a cluster names
 * its pods, and the run (`TAPEDECK_RUN`). Those that were given count before them. What is no label is left out: `assertLabels`
 * says so.
 */
export function labelsIn(env: NodeJS.ProcessEnv, labels: Labels): Labels {
  const { TAPEDECK_RUN: run = '' } = env;
  const own: Labels = run === '' ? [] : [['run', run]];
  const all = new Map([...listedIn(env).flatMap(pairOf), ...own, ...labels]);
  return [...labels, ...[...all].filter(([key]) => !labels.some(([given]) => given === key))];
}

/** Throws `TapedeckError` `usage` where `TAPEDECK_LABELS` has something else than labels. */
export function assertLabels(env: NodeJS.ProcessEnv): void {
  const wrong = listedIn(env).find((text) => pairOf(text).length === 0);
  if (wrong !== undefined)
    throw new TapedeckError(
      'usage',
      `Expected \`key=value,…\` in TAPEDECK_LABELS, got \`${wrong}\`. Example: TAPEDECK_LABELS=pod=web-1,zone=a`,
    );
}

function listedIn({ TAPEDECK_LABELS: text = '' }: NodeJS.ProcessEnv): string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

function pairOf(text: string): Labels {
  const at = text.indexOf('=');
  return at < 1 ? [] : [[text.slice(0, at), text.slice(at + 1)]];
}
