/** Tasks. Specification 2025-11-25, basic/utilities/tasks; later the extension io.modelcontextprotocol/tasks. */
import { createRecent } from './recent.ts';
import type { Report } from './rules.ts';
import { type Inspector, isObject, methodOf, resultOf, type Seen, shown } from './seen.ts';

const FINAL = new Set(['completed', 'failed', 'cancelled']);
const STATUSES = new Set([...FINAL, 'working', 'input_required']);
/** What asks about one task. */
const ABOUT = new Set(['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update']);

export function inspectTasks(report: Report): Inspector {
  /** By task id: the last status. */
  const statuses = createRecent<string>();

  function message(seen: Seen): void {
    const method = methodOf(seen);
    const taskId = seen.params?.['taskId'];
    if (method !== null && ABOUT.has(method) && typeof taskId === 'string' && !statuses.has(taskId))
      report('task-unknown', seen.side, seen, 'a task that an answer began', shown(taskId));
    if (method === 'notifications/tasks' || method === 'notifications/tasks/status') task(seen, seen.params);
    const result = resultOf(seen);
    if (result === null) return;
    if (isObject(result['task'])) task(seen, result['task']);
    else if (result['resultType'] === 'task' || seen.asked?.method === 'tasks/get') task(seen, result);
    if (seen.asked?.method === 'tasks/list' && Array.isArray(result['tasks']))
      for (const one of result['tasks']) task(seen, one);
  }

  function task(seen: Seen, value: unknown): void {
    if (!isObject(value)) return;
    const { taskId, status } = value;
    if (typeof taskId !== 'string' || typeof status !== 'string') return;
    if (!STATUSES.has(status))
      report('task-status', seen.side, seen, [...STATUSES].join(', '), shown(status));
    const last = statuses.get(taskId);
    if (last !== undefined && FINAL.has(last) && status !== last)
      report('task-after-end', seen.side, seen, `${last} for good`, `${status}`);
    statuses.set(taskId, status);
  }

  return { message };
}
