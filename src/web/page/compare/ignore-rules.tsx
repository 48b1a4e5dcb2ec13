/** What does not count in a comparison: the options of `diff`, as chips. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import parts from '../look/parts.module.css';
import { Button, Icon } from '../look/parts.tsx';
import { address, setQuery } from '../shell/router.ts';
import css from './compare.module.css';

/** By the names of the query, which are those of the options. */
const KINDS = {
  ignore: 'in params',
  'ignore-tool': 'in arguments of a tool',
  'ignore-result': 'in results',
} as const;

type Kind = keyof typeof KINDS;

const EXAMPLES: Readonly<Record<Kind, string>> = {
  ignore: '$._meta',
  'ignore-tool': 'search:$.now',
  'ignore-result': '$.content[0].text',
};

function rulesIn(query: URLSearchParams, kind: Kind): string[] {
  return (query.get(kind) ?? '').split('\n').filter((rule) => rule !== '');
}

/** The parameters of the route: each path on a line. */
export function ignoreParams(query: URLSearchParams): [string, string][] {
  return (Object.keys(KINDS) as Kind[]).flatMap((kind) => {
    const rules = rulesIn(query, kind);
    return rules.length === 0 ? [] : [[kind, rules.join('\n')] as [string, string]];
  });
}

export function addRule(kind: Kind, rule: string): void {
  const rules = rulesIn(address.value.query, kind);
  if (rule !== '' && !rules.includes(rule)) setQuery({ [kind]: [...rules, rule].join('\n') });
}

function removeRule(kind: Kind, rule: string): void {
  const rest = rulesIn(address.value.query, kind).filter((one) => one !== rule);
  setQuery({ [kind]: rest.join('\n') });
}

export function IgnoreForm(): VNode {
  const { query } = address.value;
  const [kind, setKind] = useState<Kind>('ignore-result');
  const [text, setText] = useState('');
  const kinds = Object.keys(KINDS) as Kind[];
  return (
    <form
      class={css.rules}
      aria-label="What does not count"
      onSubmit={(event) => {
        event.preventDefault();
        addRule(kind, text.trim());
        setText('');
      }}
    >
      {kinds.flatMap((one) =>
        rulesIn(query, one).map((rule) => (
          <span key={`${one} ${rule}`} class={css.chip}>
            <code>{rule}</code> {KINDS[one]}
            <button type="button" aria-label={`Count ${rule} again`} onClick={() => removeRule(one, rule)}>
              <Icon name="x" />
            </button>
          </span>
        )),
      )}
      <label class={css.add}>
        Ignore
        <input
          class={`${parts.input} ${css.path}`}
          type="text"
          aria-label="A JSON path that does not count"
          placeholder={EXAMPLES[kind]}
          spellcheck={false}
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <select
        class={parts.input}
        aria-label="Where it does not count"
        value={kind}
        onChange={(event) => setKind(event.currentTarget.value as Kind)}
      >
        {kinds.map((one) => (
          <option key={one} value={one}>
            {KINDS[one]}
          </option>
        ))}
      </select>
      <Button kind="framed" disabled={text.trim() === ''} onClick={() => addRule(kind, text.trim())}>
        Add
      </Button>
    </form>
  );
}

/** A pointer (RFC 6901) as the JSON path that the options take. */
export function pathOfPointer(pointer: string): string {
  const steps = pointer.split('/').slice(1);
  return `$${steps.map((step) => stepText(step.replaceAll('~1', '/').replaceAll('~0', '~'))).join('')}`;
}

function stepText(name: string): string {
  if (/^\d+$/.test(name)) return `[${name}]`;
  return /^[A-Za-z_][\w-]*$/.test(name)
    ? `.${name}`
    : `['${name.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}']`;
}
