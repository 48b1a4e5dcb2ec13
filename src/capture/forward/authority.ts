/**
 * The certificates with which the forward proxy stands in for the servers that it was given: a CA of its own, and a certificate
 * for each server. The CA can vouch for nothing else: its name constraints (RFC 5280, 4.2.1.10) permit those hosts alone, it may
 * make no further CA, it is for TLS servers only, and it ends after 30 days. It belongs into no trust store.
 */

import { createPrivateKey, KeyObject, webcrypto, X509Certificate } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import { withoutBrackets } from '../../protocol/http/origin.ts';
import type { ServerTls } from '../http/relay.ts';

/** Both as PEM texts. */
export type Authority = { certificate: string; key: string };

const DAYS_VALID = 30;

const DAY_MS = 86_400_000;

/** Clocks of clients may be behind. */
const HOUR_MS = 3_600_000;

const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Not a host's name: OpenSSL takes a subject that looks like one for one that must be permitted too. */
const NAME = 'CN=tapedeck forward proxy';

/** `hosts` as in URLs; at least one. `now`: milliseconds since the Unix epoch. */
export async function makeAuthority(hosts: readonly string[], now = Date.now()): Promise<Authority> {
  const x509 = await loadX509();
  const keys = await webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']);
  const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: NAME,
    keys,
    signingAlgorithm: P256,
    notBefore: new Date(now - HOUR_MS),
    notAfter: new Date(now + DAYS_VALID * DAY_MS),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(usages, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.Extension(NAME_CONSTRAINTS, true, new Uint8Array(constrainedTo(hosts))),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pemOf(certificate.toString('pem')), key: exportKey(keys.privateKey) };
}

/** A certificate for this host, valid as long as the CA. */
export async function issueCertificate(authority: Authority, host: string): Promise<ServerTls> {
  const x509 = await loadX509();
  const issuer = new x509.X509Certificate(authority.certificate);
  const keys = await webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']);
  const name = nameOf(host);
  const isAddress = isIPv4(name) || isIPv6(name);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: NAME,
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: P256,
    notBefore: issuer.notBefore,
    notAfter: issuer.notAfter,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([{ type: isAddress ? 'ip' : 'dns', value: name }]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { cert: pemOf(certificate.toString('pem')), key: exportKey(keys.privateKey) };
}

/** When its certificate ends, in milliseconds since the Unix epoch. */
export function expiryOf({ certificate }: Pick<Authority, 'certificate'>): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}

/** Takes a third of a second to load, so nothing else does. It needs the polyfill before it. */
async function loadX509(): Promise<typeof import('@peculiar/x509')> {
  await import('reflect-metadata');
  return import('@peculiar/x509');
}

function pemOf(text: string): string {
  return `${text.trimEnd()}\n`;
}

function exportKey(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }).toString();
}

function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return webcrypto.subtle.importKey('pkcs8', der, P256, false, ['sign']);
}

/** The host of a URL as certificates name it. */
function nameOf(host: string): string {
  return withoutBrackets(host).replace(/\.$/, '');
}

/** The extension of RFC 5280, 4.2.1.10, which the library does not write: its object identifier, and its DER. */
const NAME_CONSTRAINTS = '2.5.29.30';

/** Tags of DER; the two kinds of `GeneralName` that a server's certificate is checked by. */
const [SEQUENCE, PERMITTED, EXCLUDED, DNS_NAME, IP_ADDRESS] = [0x30, 0xa0, 0xa1, 0x82, 0x87];

/** A kind of name of which none is permitted would be free, so all of that kind are excluded. */
function constrainedTo(hosts: readonly string[]): Buffer {
  const names = hosts.map(nameOf);
  const addresses = names.filter((name) => isIPv4(name) || isIPv6(name));
  const dnsNames = names.filter((name) => !addresses.includes(name));
  const permitted = [
    ...dnsNames.map((name) => der(DNS_NAME, Buffer.from(name))),
    ...addresses.map((address) => der(IP_ADDRESS, onlyAddress(address))),
  ];
  const excluded = [
    ...(dnsNames.length === 0 ? [der(DNS_NAME)] : []),
    ...(addresses.length === 0 ? [der(IP_ADDRESS, Buffer.alloc(8)), der(IP_ADDRESS, Buffer.alloc(32))] : []),
  ];
  const subtrees = (tag: number, all: readonly Buffer[]) =>
    all.length === 0 ? [] : [der(tag, ...all.map((name) => der(SEQUENCE, name)))];
  return der(SEQUENCE, ...subtrees(PERMITTED, permitted), ...subtrees(EXCLUDED, excluded));
}

/** The address, and a mask of which every bit counts. */
function onlyAddress(address: string): Buffer {
  const bytes = isIPv4(address) ? Buffer.from(address.split('.').map(Number)) : bytesOfIpv6(address);
  return Buffer.concat([bytes, Buffer.alloc(bytes.length, 0xff)]);
}

/** As URLs write it: groups of hexadecimal digits, of which the zeros in one place may be left out. */
function bytesOfIpv6(address: string): Buffer {
  const [before = [], after] = address
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = after === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0');
  const groups = [...before, ...zeros, ...(after ?? [])];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
