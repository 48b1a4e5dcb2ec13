/** The real server: one tool, over stdio. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const DEGREES = { Bern: 10, Lagos: 31, Oslo: 4 };

const server = new McpServer({ name: 'weather', version: '1.0.0' });

server.registerTool(
  'temperature',
  { description: 'The temperature in a city, in °C', inputSchema: { city: z.string() } },
  ({ city }) => {
    const degrees = DEGREES[city];
    if (degrees === undefined) throw new Error(`${city} has no weather station`);
    return { content: [{ type: 'text', text: String(degrees) }] };
  },
);

await server.connect(new StdioServerTransport());
