// What `tapedeck mcp` does not offer, by the scenarios of the suite's server set that ask for it: whatever a scenario does not pass
// must stand here, in the suite's own words, and whatever stands here must be so. Revisions: both, where none is named.
const first = ['2025-11-25'];
const second = ['2026-07-28'];

const fixtures = (reason, says, scenarios, revisions = [...first, ...second]) =>
  scenarios.map((scenario) => ({ scenario, reason, says, revisions }));

export const notOffered = [
  ...fixtures("the suite's own fixture tools", /Tool (test_\w+|'json_schema_2020_12_tool') not found/, [
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'tools-call-with-progress',
    'json-schema-2020-12',
  ]),
  ...fixtures("the suite's own fixture prompts", /Prompt test_\w+ not found/, [
    'completion-complete',
    'prompts-get-simple',
    'prompts-get-with-args',
    'prompts-get-embedded-resource',
    'prompts-get-with-image',
  ]),
  ...fixtures("the suite's own fixture resources", /Resource not found: test:/, [
    'resources-read-text',
    'resources-read-binary',
    'resources-templates-read',
  ]),
  ...fixtures(
    'it asks the client for nothing',
    /Tool test_\w+ not found/,
    [
      'tools-call-sampling',
      'tools-call-elicitation',
      'elicitation-sep1034-defaults',
      'elicitation-sep1330-enums',
    ],
    first,
  ),
  ...fixtures(
    'it asks the client for nothing',
    /(Tool|Prompt) test_input_required_\w+ not found|InputRequiredResult/,
    [
      'input-required-result-basic-elicitation',
      'input-required-result-basic-sampling',
      'input-required-result-basic-list-roots',
      'input-required-result-request-state',
      'input-required-result-multiple-input-requests',
      'input-required-result-multi-round',
      'input-required-result-missing-input-response',
      'input-required-result-non-tool-request',
      'input-required-result-result-type',
      'input-required-result-tampered-state',
      'input-required-result-capability-check',
      'input-required-result-ignore-extra-params',
    ],
    second,
  ),
  ...fixtures(
    'it writes no log',
    /Method not found/,
    ['tools-call-with-logging', 'logging-set-level'],
    first,
  ),
  ...fixtures(
    'a stream is not taken up again',
    /did not send (a )?(priming event|retry field)/,
    ['server-sse-polling'],
    first,
  ),
  ...fixtures(
    'the diagnostic tools of the suite, and lists that change',
    /does not list the diagnostic tool|^$/,
    ['server-stateless'],
    second,
  ),
  ...fixtures(
    'no tool has a header',
    /no tool with x-mcp-header/,
    ['http-custom-header-server-validation'],
    second,
  ),
  ...fixtures(
    'it has no tasks',
    /Tool \w+ not found|no task was created|capabilities\.extensions|got (error code )?-326|returned error code -32602|fixture from Check 2|Skipped/,
    [
      'tasks-lifecycle',
      'tasks-capability-negotiation',
      'tasks-wire-fields',
      'tasks-request-state-removal',
      'tasks-mrtr-input',
      'tasks-request-headers',
      'tasks-dispatch-and-envelope',
      'tasks-status-notifications',
      'tasks-required-task-error',
      'tasks-mrtr-composition',
    ],
    second,
  ),
];
