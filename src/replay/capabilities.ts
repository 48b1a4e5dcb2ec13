/**
 * What a client must have declared to be asked something (MCP specification 2025-11-25, client/sampling, elicitation,
 * roots; basic/utilities/tasks; 2026-07-28, basic/patterns/mrtr: nothing else may stand in `inputRequests`).
 */

/** What a client declared: the member `capabilities` of its `initialize`, or of `_meta` in 2026-07-28. */
export type Capabilities = Readonly<Record<string, unknown>>;

/** As a client would declare it, such as `elicitation.url`; null for what every client may be asked. */
export function capabilityFor(method: string, params: unknown): string | null {
  const given = objectOf(params);
  if (method === 'roots/list') return 'roots';
  if (method === 'sampling/createMessage')
    return given['tools'] === undefined ? 'sampling' : 'sampling.tools';
  if (method === 'elicitation/create')
    return given['mode'] === 'url' ? 'elicitation.url' : 'elicitation.form';
  return method.startsWith('tasks/') ? 'tasks' : null;
}

export function isDeclared(capability: string, declared: Capabilities): boolean {
  const [name = '', part] = capability.split('.');
  const own = declared[name];
  if (own === undefined || own === null || part === undefined) return own !== undefined && own !== null;
  const parts = objectOf(own);
  // Forms are what elicitation was before it had modes.
  if (capability === 'elicitation.form' && parts['url'] === undefined) return true;
  return parts[part] !== undefined && parts[part] !== null;
}

/** The first capability that the requests of a result of type `input_required` want and the client has not declared. */
export function lackingFor(inputRequests: unknown, declared: Capabilities): string | null {
  for (const request of Object.values(objectOf(inputRequests))) {
    const { method, params } = objectOf(request);
    const capability = typeof method === 'string' ? capabilityFor(method, params) : null;
    if (capability !== null && !isDeclared(capability, declared)) return capability;
  }
  return null;
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
