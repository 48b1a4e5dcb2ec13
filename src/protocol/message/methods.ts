/**
 * Method names: the canonical name of each variant that is seen in the wild or in texts about MCP, and which
 * parameter names a method's target. The wire's own name is always recorded beside the canonical one. The
 * direction is never concluded from a name. Unknown methods are legal (extensions, vendors) and stay as they are.
 */

/** Variants, most from the Language Server Protocol or from older texts, and their names in the specification. */
const CANONICAL = new Map<string, string>([
  ['initialized', 'notifications/initialized'],
  ['$/cancelled', 'notifications/cancelled'],
  ['$/cancelRequest', 'notifications/cancelled'],
  ['cancelled', 'notifications/cancelled'],
  ['notifications/cancel', 'notifications/cancelled'],
  ['$/progress', 'notifications/progress'],
  ['progress', 'notifications/progress'],
  ['logging/message', 'notifications/message'],
  ['$/logMessage', 'notifications/message'],
  ['window/logMessage', 'notifications/message'],
  ['logging/set_level', 'logging/setLevel'],
  ['$/setTrace', 'logging/setLevel'],
  ['sampling/create_message', 'sampling/createMessage'],
  ['roots/list_changed', 'notifications/roots/list_changed'],
  ['tools/list_changed', 'notifications/tools/list_changed'],
  ['prompts/list_changed', 'notifications/prompts/list_changed'],
  ['resources/list_changed', 'notifications/resources/list_changed'],
  ['resources/updated', 'notifications/resources/updated'],
]);

export function canonicalMethod(method: string): string {
  return CANONICAL.get(method) ?? method;
}

/** The parameter that says what a request or notification is about: the tool, the prompt, the resource. */
const TARGET_PARAM = new Map<string, string>([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['resources/subscribe', 'uri'],
  ['resources/unsubscribe', 'uri'],
  ['resources/directory/read', 'uri'],
  ['skills/get', 'uri'],
  ['notifications/resources/updated', 'uri'],
  ['logging/setLevel', 'level'],
  ['tasks/get', 'taskId'],
  ['tasks/result', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
  ['notifications/tasks', 'taskId'],
  ['notifications/tasks/status', 'taskId'],
]);

export function targetParam(canonical: string): string | undefined {
  return TARGET_PARAM.get(canonical);
}

/** What people ask for by the name of its kind: methods whose target is a tool, a prompt or a resource. */
export const TARGETED = {
  tool: ['tools/call'],
  prompt: ['prompts/get'],
  resource: [
    'resources/read',
    'resources/subscribe',
    'resources/unsubscribe',
    'notifications/resources/updated',
  ],
} as const;
