import type { MaintainStep } from '../../engine/maintain.ts';
import { formatCount } from '../../inspect/view/text.ts';
import { escapeText } from '../../protocol/text.ts';

/** What `engine maintain` has done, for people. */
export function lineOf(step: MaintainStep): string {
  switch (step.step) {
    case 'made':
      return `${step.week}  made the partitions of this week`;
    case 'left-in-default':
      return `${formatCount(step.weeks, 'week')} of strange clocks are left for the next time`;
    case 'dropped': {
      const kept = step.kept === 0 ? '' : `, kept ${step.kept}`;
      return `${step.week}  deleted ${formatCount(step.sessions, 'session')}${kept}`;
    }
    case 'unsealed': {
      const of = `${formatCount(step.sessions, 'session')} of ${escapeText(step.hosts.join(', '))}`;
      return `${step.week}  stays: ${of} may still grow. Ship them, or delete them there`;
    }
    case 'indexed':
      return `${step.week}  indexed the texts of this week`;
  }
}
