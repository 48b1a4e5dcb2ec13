import { expect, test } from 'vitest';
import { canonicalMethod, targetParam } from '../../../src/protocol/message/methods.ts';

test('each variant that is seen in the wild has its name in the specification', () => {
  const variants: [variant: string, canonical: string][] = [
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
  ];
  expect(variants.map(([variant]) => [variant, canonicalMethod(variant)])).toEqual(variants);
  for (const [, canonical] of variants) expect(canonicalMethod(canonical)).toBe(canonical);
});

test('both names of a task status stay as they are', () => {
  for (const method of ['notifications/tasks/status', 'notifications/tasks']) {
    expect(canonicalMethod(method)).toBe(method);
  }
});

test('methods that MCP does not know stay as they are', () => {
  for (const method of ['shutdown', 'exit', 'vendor/thing', 'Initialized', '', 'constructor', '__proto__']) {
    expect(canonicalMethod(method)).toBe(method);
    expect(targetParam(method)).toBeUndefined();
  }
});

test('the target of a method is the parameter that names the thing it is about', () => {
  const targets: [method: string, param: string | undefined][] = [
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
    ['tools/list', undefined],
    ['initialize', undefined],
  ];
  expect(targets.map(([method]) => [method, targetParam(method)])).toEqual(targets);
});
