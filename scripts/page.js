// Makes `dist/web` of `src/web/page`: the viewer's page as files of a few kinds, which its server keeps in memory; and
// `dist/report`, the same for a report.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'vite';
import { writeLicences } from './licences.js';

const ROOT = resolve(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist/web');

/** A page has no Node: what imports it by mistake must not be found out by its users. */
const noNode = {
  name: 'no-node',
  enforce: 'pre',
  resolveId(name, importer) {
    if (name.startsWith('node:')) throw new Error(`${importer} imports ${name}, which no browser has`);
    return null;
  },
};

/** An icon of lucide becomes one path, as `d` has it: rows are drawn by the hundred, and have one element less for each shape. */
const icons = {
  name: 'icons',
  enforce: 'pre',
  load(id) {
    if (!/lucide-static[\\/]icons[\\/][\w-]+\.svg$/.test(id)) return null;
    const inner = readFileSync(id, 'utf8').replace(/^[\s\S]*?<svg[^>]*>/, '');
    const paths = [...inner.matchAll(/<(\w+)\s([^>]*?)\/>/g)].map(([shape, tag, attributes]) => {
      const values = [...attributes.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]);
      const path = PATHS[tag]?.(Object.fromEntries(values));
      if (path === undefined) throw new Error(`${id} has ${shape}, which is no path yet`);
      return path;
    });
    return { code: `export default ${JSON.stringify(paths.join(' '))}`, moduleType: 'js' };
  },
};

/** Shapes as paths. SVG 2, 10.1 and 10.3. */
const PATHS = {
  // What is relative at its beginning is so to nothing, but would be to the end of the path before.
  path: ({ d }) =>
    d.replace(
      /^m\s*(-?[\d.]+)[\s,]*(-?[\d.]+)\s*(?=([-\d.]?))/,
      (_, x, y, more) => `M${x} ${y}${more && 'l'}`,
    ),
  circle({ cx, cy, r }) {
    const half = (to) => `a${r} ${r} 0 1 0 ${to} 0`;
    return `M${cx - r} ${cy}${half(2 * r)}${half(-2 * r)}z`;
  },
  rect({ x, y, width, height, rx }) {
    const corner = (dx, dy) => `a${rx} ${rx} 0 0 1 ${dx} ${dy}`;
    const [w, h] = [width - 2 * rx, height - 2 * rx];
    const sides = [
      ...[`h${w}`, corner(rx, rx), `v${h}`, corner(-rx, rx)],
      ...[`h${-w}`, corner(-rx, -rx), `v${-h}`, corner(rx, -rx)],
    ];
    return `M${Number(x) + Number(rx)} ${y}${sides.join('')}z`;
  },
};

/** Of several style sheets the one that orders the layers may not come first: each says their order. */
const layers = {
  name: 'layers',
  enforce: 'post',
  generateBundle(_, bundle) {
    for (const file of Object.values(bundle))
      if (file.fileName.endsWith('.css')) file.source = `@layer base,parts,states;${file.source}`;
  },
};

/** What both builds have in common. */
const shared = {
  root: join(ROOT, 'src/web/page'),
  configFile: false,
  publicDir: false,
  logLevel: 'warn',
  plugins: [noNode, icons, layers],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  css: { modules: { generateScopedName: '[local]-[hash:base64:4]' } },
};

const options = {
  emptyOutDir: true,
  target: 'es2022',
  assetsInlineLimit: 0,
  modulePreload: { polyfill: false },
  reportCompressedSize: false,
};

/** On a machine with other work every plugin takes long. */
const checks = { pluginTimings: false };

const { output } = await build({
  ...shared,
  build: { ...options, outDir: DIST, rolldownOptions: { checks } },
});
const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
writeLicences(join(DIST, 'LICENSES.txt'), modules);

// The same page for a report, as one script and one style sheet, which stand inside the file.
await build({
  ...shared,
  build: {
    ...options,
    outDir: join(ROOT, 'dist/report'),
    cssCodeSplit: false,
    rolldownOptions: {
      checks,
      input: join(ROOT, 'src/web/page/report.tsx'),
      output: { entryFileNames: 'report.js', assetFileNames: 'report[extname]', codeSplitting: false },
    },
  },
});
