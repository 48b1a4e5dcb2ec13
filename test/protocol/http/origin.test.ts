import { expect, test } from 'vitest';
import {
  findOriginProblem,
  isLoopback,
  isWildcard,
  type OriginRule,
} from '../../../src/protocol/http/origin.ts';

const local: OriginRule = { listenHost: '127.0.0.1', allowHosts: [], allowOrigins: [] };
const rule = (more: Partial<OriginRule>): OriginRule => ({ ...local, ...more });

test.for([
  ['localhost', local],
  ['LocalHost:8808', local],
  ['127.0.0.1:1', local],
  ['127.1.2.3', local],
  ['[::1]:8808', local],
  [undefined, local],
  ['192.168.1.5:8808', rule({ listenHost: '192.168.1.5' })],
  ['[fe80::1]', rule({ listenHost: 'fe80::1' })],
  ['10.0.0.7:8808', rule({ listenHost: '0.0.0.0' })],
  ['[2001:db8::1]', rule({ listenHost: '::' })],
  ['mcp.example:443', rule({ allowHosts: ['MCP.example'] })],
  ['mcp.example:443', rule({ allowHosts: ['mcp.example:443'] })],
  ['anything.example', rule({ allowHosts: ['*'] })],
] as const)('Host %s is our own', ([host, given]) => {
  expect(findOriginProblem(host, undefined, given)).toBeNull();
});

test.for([
  ['evil.example', local],
  ['evil.example:8808', local],
  ['localhost.evil.example', local],
  ['127.0.0.1.evil.example', local],
  ['localhost@evil.example', local],
  ['evil.example/localhost', local],
  ['2130706433', local],
  ['127.999.1.1', local],
  ['127.0.0.256', local],
  ['127.0.0.01', local],
  ['127.0.0', local],
  ['127.0.0.1.', local],
  ['127.0.0.1.1', local],
  ['999.1.1.1', rule({ listenHost: '0.0.0.0' })],
  ['', local],
  ['10.0.0.7', local],
  ['evil.example', rule({ listenHost: '0.0.0.0' })],
  ['mcp.example:80', rule({ allowHosts: ['mcp.example:443'] })],
] as const)('Host %s is not our own', ([host, given]) => {
  expect(findOriginProblem(host, undefined, given)).toEqual({ header: 'Host', value: host });
});

test.for([
  ['http://localhost:6274', local],
  ['https://127.0.0.1', local],
  ['http://[::1]:3000', local],
  ['vscode-file://vscode-app', rule({ allowOrigins: ['vscode-file://vscode-app'] })],
  ['https://app.example', rule({ allowOrigins: ['https://App.example'] })],
  ['https://app.example', rule({ allowOrigins: ['*'] })],
  ['null', rule({ allowOrigins: ['null'] })],
  ['https://mcp.example', rule({ allowHosts: ['mcp.example'] })],
] as const)('Origin %s may call', ([origin, given]) => {
  expect(findOriginProblem('localhost', origin, given)).toBeNull();
});

test('a page that came from the proxy by an address may call it there', () => {
  const given = rule({ listenHost: '0.0.0.0' });
  expect(findOriginProblem('10.0.0.7:8808', 'http://10.0.0.7:8808', given)).toBeNull();
  expect(findOriginProblem('10.0.0.7:8808', 'http://10.0.0.8:8808', given)).not.toBeNull();
});

test.for([
  ['null'],
  [''],
  ['https://evil.example'],
  ['http://localhost.evil.example'],
  ['http://localhost@evil.example'],
  ['file://'],
  ['http://localhost, http://evil.example'],
])('Origin %s may not call', ([origin]) => {
  expect(findOriginProblem('localhost', origin, local)).toEqual({ header: 'Origin', value: origin });
});

test('loopback and wildcard addresses are known by their names', () => {
  expect(['localhost', '127.0.0.1', '::1', '[::1]'].every(isLoopback)).toBe(true);
  expect(['127.0.0.1.x', '128.0.0.1', '::2', 'localhost.x'].some(isLoopback)).toBe(false);
  expect(['0.0.0.0', '::', '[::]', ''].every(isWildcard)).toBe(true);
  expect(['127.0.0.1', '::1'].some(isWildcard)).toBe(false);
});
