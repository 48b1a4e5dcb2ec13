/** The tools of a server, as its answers to `tools/list` have them. */
import { eachElement, type Span } from '../protocol/json.ts';
import { type ParamHeader, paramHeadersOf } from '../protocol/mirrored-headers.ts';
import { canonicalText } from './canonical.ts';
import { memberAt, sourceAt } from './substitute.ts';

/** By name: the tool's canonical JSON. */
export type Tools = Map<string, Buffer>;

/** Takes the tools of one answer to `tools/list`; of a name that comes again the last one counts. */
export function collectTools(tools: Tools, answer: Buffer): void {
  const list = memberAt(answer, ['result', 'tools']);
  if (list?.type !== 'array') return;
  eachElement(answer, list.start, (element: Span) => {
    if (element.type !== 'object') return;
    const text = canonicalText(answer, element);
    if (typeof text === 'string') return;
    const name: unknown = JSON.parse(sourceAt(text, ['name']) ?? 'null');
    if (typeof name === 'string') tools.set(name, text);
  });
}

export function isReadOnly(tool: Buffer | undefined): boolean {
  return tool !== undefined && sourceAt(tool, ['annotations', 'readOnlyHint']) === 'true';
}

/** Which arguments of a tool its clients repeat in HTTP headers; none of a tool that was never listed. */
export function paramHeadersIn(tools: Tools, name: string): ParamHeader[] {
  const schema = sourceAt(tools.get(name) ?? NO_TOOL, ['inputSchema']);
  return schema === undefined ? [] : paramHeadersOf(JSON.parse(schema));
}

const NO_TOOL = Buffer.from('{}');
