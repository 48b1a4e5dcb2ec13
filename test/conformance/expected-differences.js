// The only differences that a proxy or a mock may make, each with its reason: the verdicts behind the proxy or on the
// mock, by check. They hold at both revisions. In a scenario which stands here, the suite's log of requests (INFO) may differ as well.
const row = (subject, scenario, verdicts, reason) => ({ subject, scenario, verdicts, reason });

// Better through tapedeck.
const hostCheck = row(
  'server everything',
  'dns-rebinding-protection',
  { 'localhost-host-rebinding-rejected': '1 SUCCESS' },
  'the server checks no Host header, tapedeck does',
);

// What no proxy at a URL of its own can pass: everything that ties authorization to the server's own URL.
const tokenForProxy = [
  'metadata-default',
  'metadata-var1',
  'metadata-var2',
  'metadata-var3',
  'token-endpoint-auth-basic',
  'token-endpoint-auth-none',
  'token-endpoint-auth-post',
].map((name) =>
  row(
    'client',
    `auth/${name}`,
    { 'resource-parameter-matches-prm': '1 FAILURE' },
    "the client asks for a token for the URL it uses, the proxy's; the suite wants the server's",
  ),
);
const grantForProxy = row(
  'client',
  'auth/enterprise-managed-authorization',
  {
    'complete-flow-jwt-bearer': '2 FAILURE',
    'complete-flow-token-exchange': '2 SUCCESS',
    'authorization-server-metadata': '2 SUCCESS',
    'prm-pathbased-requested': '2 SUCCESS',
    'token-request': '2 SUCCESS',
    'valid-bearer-token': undefined,
  },
  "the grant names the proxy's URL as its resource, the authorization server refuses it, and the client tries twice",
);
const proofForProxy = ['dpop', 'dpop-nonce'].map((name) =>
  row(
    'client',
    `auth/${name}`,
    {
      'sep-1932-client-fresh-proof': '1 FAILURE',
      ...(name === 'dpop-nonce' && { 'sep-1932-client-rs-nonce': '1 FAILURE' }),
    },
    "a DPoP proof signs the URL which the client calls, the proxy's",
  ),
);

// What asserts a live reaction.
const missingCapabilities = row(
  'mock',
  'server-stateless',
  {
    'sep-2575-http-server-meta-invalid-400': '1 FAILURE, 2 SUCCESS',
    'sep-2575-request-meta-invalid-missing-client-capabilities': '1 FAILURE',
  },
  'what a client says of itself does not count in a replay: without capabilities the request is the same, and answered',
);

const expectedDifferences = [
  hostCheck,
  ...tokenForProxy,
  grantForProxy,
  ...proofForProxy,
  missingCapabilities,
];

export function findReason({ subject }, { scenario, check, through, isLogOnly }) {
  const expected = expectedDifferences.find((row) => row.subject === subject && row.scenario === scenario);
  if (expected === undefined) return undefined;
  const isExpected = check in expected.verdicts && expected.verdicts[check] === through;
  return isExpected || isLogOnly ? expected.reason : undefined;
}

export function scenariosThatDiffer(subject) {
  return expectedDifferences.filter((row) => row.subject === subject).map(({ scenario }) => scenario);
}
