// What of `tapedeck mcp` stands in for the tools, prompts and resources of the suite's own server. Its checks are about answers of a
// kind: a text, an error, a prompt with arguments.

// The suite reads a template with this in its URI, and looks for it in the answer.
export const RECORDING_NAME = '123';

const tool = (name, args) => (params) => ({ ...params, name, ...(args && { arguments: args }) });
const prompt = (name, args) => (params) => ({
  ...params,
  name,
  ...(params.arguments && {
    arguments: Object.fromEntries(Object.entries(params.arguments).map(([key, value]) => [args[key], value])),
  }),
});
const resource = (uri) => (params) => ({ ...params, uri });

const session = `tapedeck://session/${RECORDING_NAME}`;

export const standIns = {
  'tools/call test_simple_text': tool('list_sessions'),
  'tools/call greet': tool('list_sessions', {}),
  'tools/call test_error_handling': tool('get_session', { session: 'none' }),
  'prompts/get test_simple_prompt': prompt('why-did-it-fail', {}),
  'prompts/get test_prompt_with_arguments': prompt('what-changed', { arg1: 'before', arg2: 'after' }),
  'completion/complete test_prompt_with_arguments': ({ ref, argument, ...params }) => ({
    ...params,
    ref: { ...ref, name: 'what-changed' },
    argument: { ...argument, name: 'before' },
  }),
  'resources/read test://static-text': resource(`${session}/findings`),
  'resources/read test://template/123/data': resource(session),
};

// Returns the request as it goes on. A header that repeats the name goes with it.
export function standInFor(body, headers) {
  const message = parsed(body);
  const name = message?.params?.name ?? message?.params?.uri ?? message?.params?.ref?.name;
  const standIn = standIns[`${message?.method} ${name}`];
  if (standIn === undefined) return { body, headers };
  const params = standIn(message.params);
  const renamed = Buffer.from(JSON.stringify({ ...message, params }));
  const ours = params.name ?? params.uri;
  return {
    body: renamed,
    headers: {
      ...headers,
      'content-length': String(renamed.length),
      ...(headers['mcp-name'] === undefined ? {} : { 'mcp-name': ours }),
    },
  };
}

function parsed(body) {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
