// What `tapedeck mcp` does not offer, by the checks of the suite's server set that ask for it: a scenario, a check of it, why, and in
// which words it fails. Whatever does not pass must stand here, and whatever stands here must be so. Revisions: both, where none is
// named. Where one of our tools, prompts or resources can stand in for the suite's, it does (`stand-ins.js`), and is not in this list.
const first = ['2025-11-25'];
const second = ['2026-07-28'];

// `checks`: of each scenario its checks; true: one check that is called as the scenario is.
const rows = (reason, says, checks, revisions = [...first, ...second]) =>
  Object.entries(checks).flatMap(([scenario, ids]) =>
    (ids === true ? [scenario] : ids).map((check) => ({ scenario, check, reason, says, revisions })),
  );

const noTool = /Tool '?\w+'? not found/;

export const notOffered = [
  ...rows('no tool returns an image', noTool, { 'tools-call-image': true }),
  ...rows('no tool returns audio', noTool, { 'tools-call-audio': true }),
  ...rows('no tool embeds a resource', noTool, { 'tools-call-embedded-resource': true }),
  ...rows('no tool returns content of several kinds', noTool, { 'tools-call-mixed-content': true }),
  ...rows('no tool reports progress: each answers within seconds', noTool, {
    'tools-call-with-progress': true,
  }),
  ...rows('the check is about the schema of a tool of the suite by its name', noTool, {
    'json-schema-2020-12': ['json-schema-2020-12-tool-found'],
  }),
  ...rows('no prompt embeds a resource', /Prompt \w+ not found/, { 'prompts-get-embedded-resource': true }),
  ...rows('no prompt has an image', /Prompt \w+ not found/, { 'prompts-get-with-image': true }),
  ...rows('no resource is binary: payloads that are no text stand in JSON as base64', /Resource not found/, {
    'resources-read-binary': true,
  }),
  ...rows(
    'no tool asks the client for anything',
    noTool,
    {
      'tools-call-sampling': true,
      'tools-call-elicitation': true,
      'elicitation-sep1034-defaults': ['elicitation-sep1034-general'],
      'elicitation-sep1330-enums': ['elicitation-sep1330-general'],
    },
    first,
  ),
  ...rows(
    'no tool asks the client for anything',
    /(Tool|Prompt) test_input_required_\w+ not found/,
    {
      'input-required-result-basic-elicitation': ['sep-2322-elicitation-incomplete'],
      'input-required-result-basic-sampling': ['sep-2322-sampling-incomplete'],
      'input-required-result-basic-list-roots': ['sep-2322-list-roots-incomplete'],
      'input-required-result-request-state': ['sep-2322-request-state-incomplete'],
      'input-required-result-multiple-input-requests': ['sep-2322-multiple-inputs-incomplete'],
      'input-required-result-non-tool-request': ['sep-2322-non-tool-incomplete'],
      'input-required-result-result-type': ['sep-2322-result-type-included'],
      'input-required-result-capability-check': ['sep-2322-respect-client-capabilities'],
      'input-required-result-ignore-extra-params': ['sep-2322-ignore-unexpected-params'],
    },
    second,
  ),
  ...rows(
    'no tool asks the client for anything, so there is no first round to go on from',
    /InputRequiredResult/,
    {
      'input-required-result-multi-round': ['sep-2322-multi-round-r1'],
      'input-required-result-missing-input-response': ['sep-2322-missing-response-rerequests'],
      'input-required-result-tampered-state': ['sep-2322-reject-tampered-state'],
    },
    second,
  ),
  ...rows(
    'the capability `logging` is not declared',
    /Method not found/,
    { 'tools-call-with-logging': true, 'logging-set-level': true },
    first,
  ),
  ...rows(
    'to take up a broken stream again is optional, and answers are short',
    /did not send (a )?(priming event|retry field)/,
    { 'server-sse-polling': ['server-sse-priming-event', 'server-sse-retry-field'] },
    first,
  ),
  ...rows(
    'the check needs a diagnostic tool of the suite',
    /does not list the diagnostic tool/,
    {
      'server-stateless': [
        'sep-2575-server-rejects-undeclared-capability',
        'sep-2575-missing-capability-http-400',
        'sep-2575-http-server-no-independent-requests-on-stream',
        'sep-2575-server-no-log-without-loglevel',
      ],
    },
    second,
  ),
  ...rows(
    'the capability `listChanged` is not declared: these lists never change',
    /^$/,
    {
      'server-stateless': [
        'sep-2575-server-sends-prompts-list-changed-on-subscription',
        'sep-2575-server-sends-tools-list-changed-on-subscription',
      ],
    },
    second,
  ),
  ...rows(
    'no tool has a parameter with x-mcp-header',
    /no tool with x-mcp-header/,
    {
      'http-custom-header-server-validation': [
        'sep-2243-server-no-xmcp-tool',
        'sep-2243-server-decode-base64',
        'sep-2243-server-validate-param-match',
        'sep-2243-server-reject-invalid-param-chars',
        'sep-2243-server-reject-param-mismatch',
      ],
    },
    second,
  ),
  ...rows(
    'the extension for tasks is not declared: no tool makes one',
    noTool,
    {
      'tasks-wire-fields': ['tasks-wire-field-renames', 'tasks-no-related-task-meta-on-inlined-result'],
      'tasks-request-state-removal': ['tasks-request-state-removal-setup'],
      'tasks-request-headers': ['sep-2663-routing-headers-accepted-on-tasks-get'],
      'tasks-mrtr-input': [
        'sep-2663-tasks-get-status-input-required',
        'tasks-mrtr-tasks-update-resumes',
        'tasks-mrtr-partial-fulfillment',
      ],
      'tasks-mrtr-composition': ['sep-2663-mrtr-synchronous-before-task-creation'],
      'tasks-lifecycle': [
        'sep-2663-result-type-task-on-create',
        'sep-2663-tool-error-uses-completed-status',
        'sep-2663-tasks-get-status-failed',
        'sep-2663-cancel-ack-empty-result',
        'tasks-cancel-terminal-idempotent-ack',
      ],
      'tasks-dispatch-and-envelope': [
        'tasks-result-type-complete-on-non-task-responses',
        'tasks-server-directed-creation-no-hint',
        'tasks-immediate-result-shortcut',
        'sep-2663-durable-create-strong-consistency',
      ],
      'tasks-capability-negotiation': [
        'sep-2663-server-rejects-undeclared-client',
        'tasks-per-request-meta-opt-in',
      ],
    },
    second,
  ),
  ...rows(
    'the extension for tasks is not declared: there is no task to look at',
    /no task was created|fixture from Check 2/,
    {
      'tasks-wire-fields': ['tasks-no-early-ttl-expiry'],
      'tasks-request-headers': ['sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get'],
      'tasks-lifecycle': ['sep-2663-tasks-get-status-working', 'sep-2663-tasks-get-status-completed'],
    },
    second,
  ),
  ...rows(
    'the extension for tasks is not declared: its methods and errors are not there',
    /capabilities\.extensions|got (error code )?-326|returned error code -32602/,
    {
      'tasks-required-task-error': ['sep-2663-server-returns-missing-capability-when-required'],
      'tasks-dispatch-and-envelope': ['sep-2663-tasks-get-invalid-task-id-32602'],
      'tasks-capability-negotiation': ['tasks-extension-advertised', 'sep-2663-tasks-methods-non-declaring'],
    },
    second,
  ),
  ...rows(
    'the suite itself leaves this check out',
    /harness needs a rewrite/,
    {
      'tasks-status-notifications': ['tasks-status-notifications'],
    },
    second,
  ),
  ...rows(
    'no tool greets: the check compares the greeting',
    /tool result content MUST be unaffected/,
    { 'tasks-request-headers': ['tasks-headers-tolerate-mcp-method-on-tools-call'] },
    second,
  ),
];
