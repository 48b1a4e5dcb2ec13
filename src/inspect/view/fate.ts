/** The fate of a call in a sentence, for people. What a server or a client wrote stands in it: it is not escaped. */

import type { Fate } from '../verdict/fate.ts';
import { formatDuration } from './text.ts';

/** Without a capital and a full stop; `''` where an answer may still come, of which there is nothing to say. */
export function fateText(fate: Fate): string {
  const { verdict, asked, by, why } = fate;
  switch (verdict) {
    case 'never-came':
      return `the ${by} never sent a request with this id`;
    case 'not-forwarded':
      return `it never reached the server: ${why}`;
    case 'server-gone':
      return `the server had closed its output ${timeText(fate.gap)} before it came`;
    case 'no-answer':
      return `the ${asked} never answered it${waitText(fate)}${readText(fate)}`;
    case 'client-left':
      return `the client closed the connection after ${timeText(fate.waited)}, before an answer`;
    case 'cancelled':
      return cancelText(fate);
    case 'refused':
      return `the server refused it: ${why}`;
    case 'mismatched':
      return `the ${asked} answered it after ${timeText(fate.waited)} as #${fate.answerSeq}, but with the id as another type`;
    case 'dropped':
      return droppedText(fate);
    case 'crossed':
      return `it crossed the answer #${fate.answerSeq}, handed over ${timeText(fate.gap)} before`;
    case 'open':
      return '';
    case 'unknown':
      return `what became of it is unknown: ${why}`;
  }
}

function timeText(microseconds: number | null): string {
  return formatDuration((microseconds ?? 0) / 1000);
}

function waitText({ waited, why }: Fate): string {
  if (waited === null) return why === null ? '' : `: ${why}`;
  return `: after ${timeText(waited)} ${why}`;
}

function readText({ readBy, asked }: Fate): string {
  return readBy === null ? '' : `; it had come to the ${asked}, which answered #${readBy} that came later`;
}

function cancelText({ by, waited, why, answerSeq, gap }: Fate): string {
  const how = why === null ? '' : `: ${why}`;
  const end =
    answerSeq === null ? ', before an answer' : `; the answer #${answerSeq} came ${timeText(gap)} later`;
  return `the ${by} cancelled it after ${timeText(waited)}${how}${end}`;
}

function droppedText({ answerSeq, gap, waited }: Fate): string {
  return gap === null
    ? `the answer #${answerSeq} came after ${timeText(waited)}, and the client left before it had all of it`
    : `the client had been handed the answer #${answerSeq} ${timeText(gap)} before`;
}

/** As `--json` prints it. */
export function fateJson(fate: Fate) {
  const { verdict, asked, by, waited, why, answerSeq, gap, readBy } = fate;
  return {
    verdict,
    asked,
    by,
    waitedMs: waited === null ? null : waited / 1000,
    gapMs: gap === null ? null : gap / 1000,
    answerSeq,
    readBy,
    why,
    text: fateText(fate),
  };
}
