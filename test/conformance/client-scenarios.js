// What the official client does in each scenario of the suite, which says by environment variables which one it is,
// at which revision, and what the client has to know.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { authScenario } from './client-auth.js';

const info = { name: 'tapedeck-conformance', version: '1.0.0' };
const modern = '2026-07-28';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const isModern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === modern;

const scenarios = {
  initialize: { run: (client) => client.listTools() },
  tools_call: { run: callTool('add_numbers', { a: 5, b: 3 }) },
  'request-metadata': { capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: {} } },
  'sse-retry': { run: callTool('test_reconnection') },
  'elicitation-sep1034-client-defaults': {
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    elicit: () => ({ action: 'accept', content: {} }),
    run: callTool('test_client_elicitation_defaults'),
  },
  'json-schema-ref-no-deref': { run: (client) => client.listTools() },
  'json-schema-2020-12-preservation': { run: returnSchema },
  'http-standard-headers': { skipsDiscovery: true, run: useOneOfEach },
  'http-custom-headers': { skipsDiscovery: true, run: callAsTold },
  'http-invalid-tool-headers': { skipsDiscovery: true, run: callEveryTool },
  'sep-2322-client-request-state': {
    skipsDiscovery: true,
    capabilities: { elicitation: {} },
    elicit: () => ({ action: 'accept', content: { confirmed: true } }),
    run: callWithRounds,
  },
};

// An error ends the program with a status of 1, which the suite allows where it wants the client to refuse.
export async function runClient(url) {
  const name = process.env.MCP_CONFORMANCE_SCENARIO;
  const { run, ...settings } = name.startsWith('auth/') ? authScenario(name, context) : scenarios[name];
  const client = await connect(url, settings);
  await run?.(client);
  await client.close();
}

async function connect(url, settings) {
  const { capabilities = {}, elicit, skipsDiscovery, transport: options, user } = settings;
  const client = new Client(info, {
    capabilities,
    versionNegotiation: { mode: isModern ? 'auto' : 'legacy' },
  });
  if (elicit) client.setRequestHandler('elicitation/create', elicit);
  const transport = new StreamableHTTPClientTransport(new URL(url), options);
  try {
    await client.connect(transport, skipsDiscovery ? { prior: assumedServer } : {});
    return client;
  } catch (error) {
    if (!(await user?.finish(error, transport))) throw error;
    return connect(url, settings);
  }
}

// The suite's server of some modern scenarios answers no `server/discover`: the client is told what it would say.
const assumedServer = {
  kind: 'modern',
  discover: {
    resultType: 'complete',
    supportedVersions: [modern],
    capabilities: { tools: {}, resources: {}, prompts: {} },
    ttlMs: 0,
    cacheScope: 'private',
  },
};

function callTool(name, args = {}) {
  return async (client) => {
    await client.listTools();
    await client.callTool({ name, arguments: args });
  };
}

async function returnSchema(client) {
  const { tools } = await client.listTools();
  const schema = tools.find((tool) => tool.name === 'json_schema_2020_12_tool').inputSchema;
  await client.callTool({ name: 'json_schema_echo', arguments: { schema } });
}

async function useOneOfEach(client) {
  const { tools } = await client.listTools();
  await client.callTool({ name: tools[0].name, arguments: {} });
  const { resources } = await client.listResources();
  await client.readResource({ uri: resources[0].uri });
  const { prompts } = await client.listPrompts();
  await client.getPrompt({ name: prompts[0].name, arguments: {} });
}

async function callAsTold(client) {
  await client.listTools();
  for (const call of context.toolCalls) await client.callTool(call);
}

// Tools whose headers are invalid are to be missing from the list; a call that fails is the suite's to judge.
async function callEveryTool(client) {
  const { tools } = await client.listTools();
  for (const { name } of tools) {
    await client.callTool({ name, arguments: { region: 'us-west1' } }).catch(() => {});
  }
}

// The last tool's result has no `resultType`, which this client refuses; the suite wants no retry.
async function callWithRounds(client) {
  for (const name of ['test_mrtr_echo_state', 'test_mrtr_no_state', 'test_mrtr_unrelated']) {
    await client.callTool({ name, arguments: {} });
  }
  await client.callTool({ name: 'test_mrtr_no_result_type', arguments: {} }).catch(() => {});
}
