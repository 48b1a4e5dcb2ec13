// The scenarios of authorization: how the official client gets a token, by the SDK's own providers where it has
// one, else by a user who consents at once.
import {
  ClientCredentialsProvider,
  CrossAppAccessProvider,
  DpopSession,
  PrivateKeyJwtProvider,
  requestJwtAuthorizationGrant,
  UnauthorizedError,
} from '@modelcontextprotocol/client';

const redirectUrl = 'http://localhost:3000/callback';
const clientMetadataUrl = 'https://conformance-test.local/client-metadata.json';
const maxRounds = 2;

const machineProviders = {
  'auth/client-credentials-jwt': (context) =>
    new PrivateKeyJwtProvider({
      clientId: context.client_id,
      privateKey: context.private_key_pem,
      algorithm: context.signing_algorithm ?? 'ES256',
    }),
  'auth/client-credentials-basic': (context) =>
    new ClientCredentialsProvider({ clientId: context.client_id, clientSecret: context.client_secret }),
  'auth/enterprise-managed-authorization': createCrossAppProvider,
};

export function authScenario(name, context) {
  const machine = machineProviders[name]?.(context);
  if (machine) return { transport: { authProvider: machine }, run: (client) => client.listTools() };
  const user = createUser(context, name.startsWith('auth/dpop') ? DpopSession.create() : undefined);
  return { transport: { authProvider: user.provider }, user, run: (client) => listAndCall(client, user) };
}

async function listAndCall(client, user) {
  await whileAuthorizing(client, user, () => client.listTools());
  await whileAuthorizing(client, user, () => client.callTool({ name: 'test-tool', arguments: {} }));
}

// A request may need more scope than the token has, or another authorization server than the one that gave it.
async function whileAuthorizing(client, user, request) {
  try {
    await request();
  } catch (error) {
    if (!(await user.finish(error, client.transport))) throw error;
    await whileAuthorizing(client, user, request);
  }
}

// The SDK's provider of a user who says yes at once: instead of a browser, it asks for the authorization page itself
// and keeps what the redirect brings. `finish` then redeems it, and says whether it is worth to try again.
function createUser({ client_id, client_secret }, dpopSession) {
  const kept = { client: client_id && { client_id, client_secret, redirect_uris: [redirectUrl] } };
  let callback;
  let rounds = 0;
  const provider = {
    redirectUrl,
    clientMetadataUrl,
    clientMetadata: { client_name: 'tapedeck-conformance', redirect_uris: [redirectUrl] },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => Object.assign(kept, { client }),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => Object.assign(kept, { tokens }),
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier) => Object.assign(kept, { verifier }),
    ...(dpopSession && { dpop: () => dpopSession }),
    invalidateCredentials: (scope) => forget(kept, scope),
    redirectToAuthorization: async (url) => {
      const response = await fetch(url, { redirect: 'manual' });
      callback = new URL(response.headers.get('location')).searchParams;
    },
  };
  const finish = async (error, transport) => {
    rounds += 1;
    if (!(error instanceof UnauthorizedError) || callback === undefined || rounds > maxRounds) return false;
    await transport.finishAuth(callback);
    callback = undefined;
    return true;
  };
  return { provider, finish };
}

function forget(kept, scope) {
  for (const name of ['client', 'tokens', 'verifier']) {
    if (scope === 'all' || scope === name) delete kept[name];
  }
}

function createCrossAppProvider(context) {
  return new CrossAppAccessProvider({
    clientId: context.client_id,
    clientSecret: context.client_secret,
    assertion: async ({ authorizationServerUrl, resourceUrl, fetchFn }) => {
      const grant = await requestJwtAuthorizationGrant({
        tokenEndpoint: context.idp_token_endpoint,
        audience: authorizationServerUrl,
        resource: resourceUrl,
        idToken: context.idp_id_token,
        clientId: context.idp_client_id,
        fetchFn,
      });
      return grant.jwtAuthGrant;
    },
  });
}
