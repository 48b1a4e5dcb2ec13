/** The options that say what is redacted, for the commands that yargs reads. */

const LIST = { type: 'string', array: true, default: [] as string[], requiresArg: true } as const;

export const REDACTION_OPTIONS = {
  'no-redact-rule': { ...LIST, describe: 'Do without the rule of this id; may be repeated' },
  'redact-rule': { ...LIST, describe: 'A further rule: id=/pattern/flags; may be repeated' },
} as const;

export const PATH_OPTION = {
  ...LIST,
  describe: 'Redact the value at this JSON path of every message, like $..card; may be repeated',
} as const;
