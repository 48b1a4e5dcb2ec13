/** The code under test: it works with any MCP client that is connected to a weather server. */

/**
 * @param {{ callTool: (params: { name: string, arguments: { city: string } }) => Promise<unknown> }} client
 * @param {readonly string[]} cities
 * @returns {Promise<string>}
 */
export async function warmest(client, cities) {
  let best = { city: '', degrees: Number.NEGATIVE_INFINITY };
  for (const city of cities) {
    const degrees = await temperature(client, city);
    if (degrees > best.degrees) best = { city, degrees };
  }
  return best.city;
}

async function temperature(client, city) {
  const result = await client.callTool({ name: 'temperature', arguments: { city } });
  const [content] = result.content;
  if (result.isError) throw new Error(`no temperature: ${content.text}`);
  return Number(content.text);
}
