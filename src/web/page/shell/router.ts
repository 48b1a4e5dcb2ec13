/** Every state that can be seen is in the address: a path and a query. */
import { signal } from '@preact/signals';

export type Address = { path: string; query: URLSearchParams };

export type Query = Readonly<Record<string, string | null>>;

/** A page that is a file has its address behind the `#`: a browser lets it change nothing else. */
let isFile = false;

/** Where the page is. */
export const address = signal<Address>(read());

export function keepInHash(): void {
  isFile = true;
  address.value = read();
}

function here(): string {
  return isFile ? location.hash.slice(1) || '/' : location.pathname + location.search;
}

function read(): Address {
  const [, path = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(here()) ?? [];
  return { path: decodeURI(path), query: new URLSearchParams(query) };
}

/** `replace` where one step of going back should not stop at what was left: a row after another, a letter after another. */
export function go(to: string, how: 'push' | 'replace' = 'push'): void {
  if (to === here()) return;
  history[how === 'push' ? 'pushState' : 'replaceState'](null, '', isFile ? `#${to}` : to);
  address.value = read();
}

/** The same path with other values; null and '' take a name out. */
export function withQuery(changes: Query, path: string = address.value.path): string {
  const query = new URLSearchParams(address.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return encodeURI(path) + (text === '' ? '' : `?${text}`);
}

export function setQuery(changes: Query, how: 'push' | 'replace' = 'push'): void {
  go(withQuery(changes), how);
}

/** The values of a pattern's `:names` in a path; null where it does not fit. */
export function matchPath(pattern: string, path: string): Record<string, string> | null {
  const [want, have] = [pattern.split('/'), path.split('/')];
  if (want.length !== have.length) return null;
  const values: Record<string, string> = {};
  for (const [i, part] of want.entries()) {
    const value = have[i] ?? '';
    if (part.startsWith(':') && value !== '') values[part.slice(1)] = value;
    else if (part !== value) return null;
  }
  return values;
}

/** Links inside the page do not load it again. */
export function followLinks(): void {
  addEventListener('popstate', () => {
    address.value = read();
  });
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const isPlain =
      event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (
      link === null ||
      !isPlain ||
      link.target !== '' ||
      link.hasAttribute('download') ||
      event.defaultPrevented
    )
      return;
    const to = pathOfLink(link);
    if (to === null) return;
    event.preventDefault();
    go(to);
  });
}

/** Null for a link that leads elsewhere. */
function pathOfLink(link: HTMLAnchorElement): string | null {
  if (isFile) return link.getAttribute('href')?.startsWith('/') ? link.getAttribute('href') : null;
  const to = new URL(link.href);
  return to.origin === location.origin ? to.pathname + to.search : null;
}
