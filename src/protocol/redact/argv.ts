/** Redacts credentials on a command line, in its record only: the command itself runs as it is. */

import { isPlaceholder, isSecretValue, secretName } from './names.ts';
import type { Redactor } from './redactor.ts';

const OPTION = /^(-{0,2}[A-Za-z_][\w.-]*)=(.+)$/s;

const NAME_ALONE = /^--?[A-Za-z][\w.-]*$/;

const HEADER = /^([A-Za-z][\w-]*):[ \t]*(?=\S)/;

const URL_LIKE = /^[a-z][a-z0-9+.-]*:\/\//i;

const USER = /^(?:-[uU]|--(?:proxy-)?user)$/;

const USER_PASSWORD = /^([^:]*:)(.+)$/s;

function isCurl(word: string): boolean {
  return /(?:^|[\\/])curl(?:\.exe)?$/.test(word);
}

/** `--api-key x`, `--token=x`, `-H 'Authorization: Bearer x'`, `API_KEY=x`, URLs, and what looks like a secret. */
export function redactArgv(argv: readonly string[], redactor: Redactor): string[] {
  return argv.map((word, i) => {
    const before = argv[i - 1] ?? '';
    const [, user = '', password = ''] = USER.test(before) ? (USER_PASSWORD.exec(word) ?? []) : [];
    if (password !== '' && redactor.isOn('login') && argv.slice(0, i).some(isCurl))
      return isPlaceholder(password) ? word : user + redactor.placeholder('login', password);
    const isValue = NAME_ALONE.test(before) && !word.startsWith('-');
    return isValue && isSecret(before, word, redactor)
      ? redactor.placeholder('secret-value', word)
      : redactWord(word, redactor);
  });
}

function redactWord(word: string, redactor: Redactor): string {
  const [, name = '', value = ''] = OPTION.exec(word) ?? [];
  if (name !== '' && isSecret(name, value, redactor))
    return `${name}=${redactor.placeholder('secret-value', value)}`;
  if (URL_LIKE.test(word)) return redactor.url(word);
  const header = HEADER.exec(word);
  if (header?.[1] !== undefined) {
    const [start] = header;
    return start + redactor.header(header[1], word.slice(start.length));
  }
  return redactor.text(word);
}

function isSecret(name: string, value: string, redactor: Redactor): boolean {
  return redactor.isOn('secret-value') && secretName(name) !== null && isSecretValue('password', value);
}
