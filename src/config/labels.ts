type Labels = [key: string, value: string][];

/** The labels of a recording, with the run that the environment names (`TAPEDECK_RUN`), where none is among them. */
export function labelsIn(env: NodeJS.ProcessEnv, labels: Labels): Labels {
  const { TAPEDECK_RUN: run = '' } = env;
  return run === '' || labels.some(([key]) => key === 'run') ? labels : [...labels, ['run', run]];
}
