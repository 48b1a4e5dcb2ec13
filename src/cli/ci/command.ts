import { appendFileSync } from 'node:fs';
import { commentMarker, commentText, isWorthTelling } from '../../ci/comment.ts';
import { type CiOutcome, exitCodeOf, sarifOfCi } from '../../ci/findings.ts';
import { type CommentResult, pullRequestOf, putComment, runUrlOf } from '../../ci/github.ts';
import { TapedeckError } from '../../errors.ts';
import { escapeText } from '../../protocol/text.ts';
import { VERSION } from '../../version.ts';
import { type Command, type Io, pathOf, say } from '../io.ts';
import { ASSERTION_OPTIONS, JSON_OPTION } from '../options.ts';
import { withLineEnds, writeOutput, writeReport } from '../output.ts';
import { HEADER_OPTION } from '../play/live-server.ts';
import { RULE_OPTIONS, refuseUnknownRules } from '../read/check.ts';
import { IGNORE_OPTIONS } from '../read/diff.ts';
import { REDACTION_OPTIONS } from '../redaction-options.ts';
import { humanLines, jsonLines } from './report.ts';
import { type CiOptions, readPlan, runPlan } from './run.ts';

type Options = CiOptions & {
  sarif: string | undefined;
  comment: boolean;
  title: string;
  json: boolean;
};

const OPTIONS = {
  url: { type: 'string', describe: 'Verify against the server at this URL', requiresArg: true },
  header: HEADER_OPTION,
  'read-only': {
    type: 'boolean',
    default: false,
    describe: 'Verify calls only of tools whose annotations say readOnlyHint',
  },
  base: {
    type: 'string',
    describe: 'A commit of git, or a folder with the same paths: what recordings are compared with',
    requiresArg: true,
  },
  ...RULE_OPTIONS,
  ...ASSERTION_OPTIONS,
  ...IGNORE_OPTIONS,
  ...REDACTION_OPTIONS,
  sarif: { type: 'string', describe: 'Write the findings as SARIF 2.1.0', requiresArg: true },
  comment: {
    type: 'boolean',
    default: false,
    describe: 'In GitHub Actions: comment on the pull request, or change that comment',
  },
  title: {
    type: 'string',
    default: 'MCP recordings',
    describe: 'What the comment is called; several of one pull request differ by it',
    requiresArg: true,
  },
  json: JSON_OPTION,
} as const;

export const ciCommand: Command<Options> = {
  command: 'ci [paths..]',
  describe: 'Check, verify and diff the text recordings of a repository, for a pull request',
  builder: (args) =>
    args
      .usage(
        '$0 ci [paths..] [options]\n$0 ci [paths..] [options] -- <server command> [args…]\n\nHolds each text recording to the rules of the protocol and to assertions. With a server, asks it what was recorded, and compares. With --base, compares each recording with what it was there.',
      )
      .positional('paths', {
        type: 'string',
        array: true,
        default: ['.'],
        describe: 'Text recordings (.ndjson), or folders of them',
      })
      .options(OPTIONS)
      .check(({ skip, title }) => refuseUnknownRules(skip) && refuseLongTitle(title))
      .epilog('Exits with 0 if nothing was found, 1 if something was, 2 if not everything could be checked.')
      .example('$0 ci', 'All text recordings below this folder')
      .example('$0 ci recordings --base origin/main --sarif ci.sarif', 'Compared with those of a branch')
      .example('$0 ci test/search.ndjson --read-only -- ./server', 'Asks the server, too') as never,
  async run(argv, io) {
    const outcome = await runPlan(readPlan(argv, io), io);
    if (outcome === null) return;
    if (argv.sarif !== undefined) writeReport(io, argv.sarif, sarifOfCi(outcome, VERSION));
    const comment = argv.comment ? await tellPullRequest(io, outcome, argv.title) : null;
    await writeOutput(io, withLineEnds(argv.json ? jsonLines(outcome, comment) : humanLines(io, outcome)));
    io.exitCode = exitCodeOf(outcome);
  },
};

/** A comment has room for more than its title. */
const MAX_TITLE = 100;

function refuseLongTitle(title: string): true {
  if (title.trim() !== '' && title.length <= MAX_TITLE) return true;
  throw new TapedeckError('usage', `Expected 1 to ${MAX_TITLE} characters after \`--title\`.`);
}

/** A comment that cannot be made leaves the exit code as it is: its text goes to the summary of the job, where there is one. */
async function tellPullRequest(io: Io, outcome: CiOutcome, title: string): Promise<CommentResult> {
  const pull = pullRequestOf(io.env);
  const body = commentText(outcome, { title, version: VERSION, runUrl: runUrlOf(io.env) });
  const result =
    typeof pull === 'string'
      ? ({ kind: 'failed', why: pull } as const)
      : await putComment(pull, commentMarker(title), body, isWorthTelling(outcome));
  if (result.kind !== 'failed') return result;
  const summary = io.env['GITHUB_STEP_SUMMARY'];
  const instead = summary ? writeSummary(io, summary, body) : '';
  say(io, escapeText(`no comment on a pull request: ${result.why}.${instead}`));
  return result;
}

function writeSummary(io: Io, file: string, body: string): string {
  try {
    appendFileSync(pathOf(io, file), `${body}\n`);
    return ' It stands in the summary of this job instead.';
  } catch (error) {
    return ` Nor can the summary of this job be written: ${(error as Error).message}.`;
  }
}
