import { expect, test } from 'vitest';
import { formatIsoTime, parseIsoTime } from '../../src/protocol/text.ts';

test('a time for machines is UTC with six digits, whatever the microsecond', () => {
  expect(formatIsoTime(0)).toBe('1970-01-01T00:00:00.000000Z');
  expect(formatIsoTime(1_763_632_800_000_001)).toBe('2025-11-20T10:00:00.000001Z');
  expect(formatIsoTime(1_763_632_800_999_999)).toBe('2025-11-20T10:00:00.999999Z');
});

test('a time is read as it was written, and with a shorter fraction', () => {
  for (const at of [0, 1_763_632_800_000_001, 1_763_632_800_999_999]) {
    expect(parseIsoTime(formatIsoTime(at))).toBe(at);
  }
  expect(parseIsoTime('1970-01-01T00:00:01Z')).toBe(1_000_000);
  expect(parseIsoTime('1970-01-01T00:00:00.5Z')).toBe(500_000);
});

test('what is no time in UTC, or no day of the calendar, is none', () => {
  for (const text of ['', 'now', '2026-11-20', '2026-11-20T10:00:00', '2026-11-20T10:00:00+01:00']) {
    expect(parseIsoTime(text), text).toBeNull();
  }
  for (const text of ['2026-02-30T10:00:00Z', '2026-13-01T10:00:00Z', '2026-11-20T25:00:00Z']) {
    expect(parseIsoTime(text), text).toBeNull();
  }
});
