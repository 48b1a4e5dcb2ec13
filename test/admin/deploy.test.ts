/** The files of `deploy`: what they say must be what tapedeck knows, and what the programs that read them accept. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { HTTP_OPTIONS } from '../../src/cli/record/http-options.ts';
import { checkRecordOptions, RECORD_OPTIONS } from '../../src/cli/record/options.ts';
import { readConfiguration } from '../../src/config/file.ts';
import { recordUrl } from '../support/http-record.ts';
import { askAdmin, samplesOf, startRawClient, startSessionServer } from '../support/operations.ts';
import { IS_FULL } from '../support/scale.ts';
import { BIN, ROOT, tempFolder, until } from '../support/tapedeck.ts';

const DEPLOY = join(ROOT, 'deploy');
const textOf = (file: string) => readFileSync(join(DEPLOY, file), 'utf8');

function isThere(program: string, option = '--version'): boolean {
  return spawnSync(program, [option]).status === 0;
}

/** At full size, with a program that is skipped where it is missing; with `REQUIRE_DEPLOY` the test fails then. */
const testWith = (program: string, option?: string) =>
  test.runIf(IS_FULL && (process.env['REQUIRE_DEPLOY'] === '1' || isThere(program, option)));

/** The options of a command line `record <url> …`. */
function optionsOf(words: readonly string[]) {
  expect(words[0]).toBe('record');
  expect(words[1]).toMatch(/^https?:/);
  const options = { ...RECORD_OPTIONS, ...HTTP_OPTIONS };
  const { values } = parseArgs({ args: words.slice(2), options, strict: true });
  checkRecordOptions(values);
  return values;
}

// biome-ignore lint/suspicious/noExplicitAny: what somebody else's schema describes
type Manifest = any;

const manifestsOf = (name: string): Manifest[] =>
  parseAllDocuments(textOf(`kubernetes/${name}`)).map((document) => document.toJS());

const PODS: [file: string, containers: string][] = [
  ['sidecar.yaml', 'initContainers'],
  ['deployment.yaml', 'containers'],
];

test.each(PODS)('the recorder of %s is stopped kindly, watched, and without rights', (file, containers) => {
  const manifests = manifestsOf(file);
  const { spec } = manifests.find(({ kind }) => kind === 'Deployment').spec.template;
  const recorder = spec[containers].find(({ name }: Manifest) => name === 'tapedeck');
  const options = optionsOf(recorder.args);
  const [, wait] = recorder.lifecycle.preStop.exec.command;
  // And 10 s of --drain, where it is shipped.
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(wait) + Number(options.grace) + 10);
  expect(recorder.restartPolicy).toBe(containers === 'initContainers' ? 'Always' : undefined);

  const ports = new Map<string, number>(
    recorder.ports.map((port: Manifest) => [port.name, port.containerPort]),
  );
  expect(options.listen).toBe(`0.0.0.0:${ports.get('mcp')}`);
  expect(options.admin).toBe(`0.0.0.0:${ports.get('metrics')}`);
  const probes = ['startupProbe', 'readinessProbe', 'livenessProbe'].map((name) => recorder[name].httpGet);
  expect(probes.map(({ path, port }) => `${port}${path}`)).toEqual([
    'metrics/healthz',
    'metrics/readyz',
    'metrics/healthz',
  ]);
  // It answers within 5 s.
  for (const name of ['readinessProbe', 'livenessProbe'])
    expect(recorder[name].timeoutSeconds).toBeGreaterThan(5);

  expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 });
  expect(recorder.securityContext).toEqual({
    ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
  });
  const volumes = new Set(spec.volumes.map(({ name }: Manifest) => name));
  for (const { name } of recorder.volumeMounts) expect(volumes).toContain(name);
  const paths = recorder.volumeMounts.map(({ mountPath }: Manifest) => mountPath);
  expect(paths).toEqual(expect.arrayContaining(['/var/lib/tapedeck', '/tmp']));
});

test.each(PODS)('the names in %s lead somewhere, and its configuration is one', (file) => {
  const manifests = manifestsOf(file);
  const named = (kind: string) =>
    manifests.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name);
  const { selector, template } = manifests.find(({ kind }) => kind === 'Deployment').spec;
  const service = manifests.find(({ kind }) => kind === 'Service').spec;
  expect(template.metadata.labels).toMatchObject(selector.matchLabels);
  expect(template.metadata.labels).toMatchObject(service.selector);
  for (const volume of template.spec.volumes) {
    if (volume.configMap) expect(named('ConfigMap')).toContain(volume.configMap.name);
    if (volume.persistentVolumeClaim)
      expect(named('PersistentVolumeClaim')).toContain(volume.persistentVolumeClaim.claimName);
  }
  const path = join(tempFolder(), 'config.json');
  writeFileSync(path, manifests.find(({ kind }) => kind === 'ConfigMap').data['config.json']);
  expect(readConfiguration({ path, isOwn: true }, {}).map(({ name }) => name)).toContain('retention.maxSize');
});

test('the unit stops kindly, with options that there are', () => {
  const unit = textOf('systemd/tapedeck.service');
  const [, command = ''] = /^ExecStart=\/usr\/bin\/tapedeck (.*)$/m.exec(unit) ?? [];
  const { grace } = optionsOf(command.split(' '));
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan(Number(grace) + 10);
  for (const line of ['Type=notify', 'NotifyAccess=all', 'ExecReload=/bin/kill -HUP $MAINPID'])
    expect(unit).toContain(`\n${line}\n`);
});

test.runIf(IS_FULL && isThere('systemd-analyze'))(
  'systemd accepts the units, the socket and the timers',
  () => {
    const folder = tempFolder();
    const files = readdirSync(join(DEPLOY, 'systemd')).map((name) => {
      const file = join(folder, name);
      writeFileSync(file, textOf(`systemd/${name}`).replace('/usr/bin/tapedeck', BIN));
      return file;
    });
    expect(files).toHaveLength(6);
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', ...files], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  },
);

/** What a unit starts, in words, without the program. */
function commandOf(unit: string): string[] {
  const [, command = ''] =
    /^ExecStart=\/usr\/bin\/tapedeck (.*)$/m.exec(textOf(`systemd/${unit}.service`)) ?? [];
  return command.split(' ');
}

const JOBS = ['tapedeck-ship', 'tapedeck-maintain'];

test.each(JOBS)('the job %s is confined as the recorder is, and has no password in its command', (job) => {
  const lines = textOf(`systemd/${job}.service`).split('\n');
  const recorder = textOf('systemd/tapedeck.service');
  const confined = recorder
    .slice(recorder.indexOf('NoNewPrivileges='), recorder.indexOf('# Not MemoryDeny'))
    .trim()
    .split('\n');
  expect(lines).toEqual(expect.arrayContaining(['Type=oneshot', 'DynamicUser=true', ...confined]));
  expect(lines.filter((line) => line.startsWith('EnvironmentFile='))).toHaveLength(1);
  expect(commandOf(job).join(' ')).not.toMatch(/postgres|--to/);
  const timer = textOf(`systemd/${job}.timer`).split('\n');
  expect(timer).toEqual(expect.arrayContaining(['Persistent=true', 'WantedBy=timers.target']));
});

test('the job that ships has the user and the store of the recorder', () => {
  const unit = textOf('systemd/tapedeck-ship.service').split('\n');
  // With DynamicUser a unit without User has the user of its own name.
  expect(unit).toEqual(expect.arrayContaining(['User=tapedeck', 'StateDirectory=tapedeck']));
  expect(textOf('systemd/tapedeck.service')).not.toMatch(/^User=/m);
  const { db } = parseArgs({
    args: commandOf('tapedeck-ship'),
    options: { db: { type: 'string' }, once: { type: 'boolean' } },
    allowPositionals: true,
  }).values;
  expect(textOf('systemd/tapedeck.service')).toContain(`--db ${db} `);
});

const cronJob = () => manifestsOf('maintain.yaml').find(({ kind }) => kind === 'CronJob').spec;

test('the job of a cluster does what that of systemd does, without rights, and never two at once', () => {
  const { concurrencyPolicy, jobTemplate } = cronJob();
  expect(concurrencyPolicy).toBe('Forbid');
  const { restartPolicy, securityContext, containers } = jobTemplate.spec.template.spec;
  expect(restartPolicy).toBe('Never');
  expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
  const [{ args, env, securityContext: rights }] = containers;
  expect(args.join(' ').replace('=', ' ')).toBe(commandOf('tapedeck-maintain').join(' '));
  expect(rights).toEqual({
    ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
  });
  expect(env.map(({ name }: Manifest) => name)).toEqual(['TAPEDECK_SHIP', 'PGPASSWORD']);
});

test('the image runs without root, and has its store on a volume', () => {
  const lines = textOf('docker/Dockerfile')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const last = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')));
  const [, store] = /TAPEDECK_DB=(\S+)\/recordings\.db/.exec(last.join('\n')) ?? [];
  expect(last).toEqual(expect.arrayContaining(['USER node', `VOLUME ${store}`, 'ENTRYPOINT ["tapedeck"]']));
  expect(last.findIndex((line) => line.startsWith('RUN '))).toBeLessThan(last.indexOf('USER node'));
  for (const line of lines.filter((one) => one.startsWith('FROM ')))
    expect(line).toMatch(/^FROM node:\d+-slim/);
});

test('nginx sends a session to one recorder, and holds no stream back', () => {
  const text = textOf('nginx/tapedeck.conf').replaceAll(/#.*/g, '');
  for (const line of ['hash $tapedeck_key consistent;', 'proxy_buffering off;', 'proxy_next_upstream off;'])
    expect(text).toContain(line);
  expect(text).toMatch(/map \$http_mcp_session_id \$tapedeck_key \{/);
});

testWith('nginx', '-v')('nginx accepts its file', () => {
  const folder = tempFolder();
  const main = join(folder, 'nginx.conf');
  const own = `include ${join(DEPLOY, 'nginx/tapedeck.conf')};`;
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/t;`,
  );
  writeFileSync(main, `pid ${folder}/pid; events {} http { access_log off; ${paths.join(' ')} ${own} }`);
  const { status, stderr } = spawnSync('nginx', ['-t', '-e', join(folder, 'log'), '-c', main], {
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
});

/** What may stand in a query beside metrics and labels. */
const WORDS = new Set([
  ...['sum', 'max', 'by', 'and', 'rate', 'increase', 'time', 'histogram_quantile', '__rate_interval', 'm'],
]);

/** Added by who scrapes. */
const SCRAPED = ['instance'];

type Queries = { place: string; expr: string }[];

function queries(): Queries {
  const [alerts] = parseAllDocuments(textOf('prometheus/alerts.yaml')).map((one) => one.toJS() as Manifest);
  const rules: Queries = alerts.groups.flatMap((group: Manifest) =>
    group.rules.map(({ alert, expr }: Manifest) => ({ place: alert, expr })),
  );
  const panels: Manifest[] = JSON.parse(textOf('grafana/dashboard.json')).panels;
  const shown = panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }: Manifest) => ({ place: title, expr })),
  );
  return [...rules, ...shown];
}

test('every query asks for metrics and labels that there are', async () => {
  const server = await startSessionServer();
  // Nothing is reached there: what is recorded waits.
  const shipping = ['--ship', 'postgres://somebody@127.0.0.1:1/tapedeck', '--drain', '0'];
  const recording = await recordUrl(server.url, { args: ['--admin', '127.0.0.1:0', ...shipping] });
  await (await startRawClient(recording.url)).call('echo');
  await until('its figures are there', async () =>
    (await askAdmin(recording.run, '/metrics')).text.includes('sessions_started_total{'),
  );
  const { text } = await askAdmin(recording.run, '/metrics');
  const samples = samplesOf(text);
  const metrics = new Set(samples.map(({ name }) => name));
  const labels = new Set([...SCRAPED, ...samples.flatMap((one) => Object.keys(one.labels))]);
  const all = queries();
  expect(all.length).toBeGreaterThan(15);
  for (const { place, expr } of all) {
    const names = [...expr.replaceAll(/"[^"]*"/g, '').matchAll(/[a-z_]\w*/gi)].map(([name]) => name);
    expect(
      names.some((name) => metrics.has(name)),
      place,
    ).toBe(true);
    for (const name of names.filter((one) => !WORDS.has(one)))
      expect(metrics.has(name) || labels.has(name), `${name} in ${place}`).toBe(true);
    for (const [, label = ''] of expr.matchAll(/[{,]\s*(\w+)\s*[=!]/g))
      expect(labels, place).toContain(label);
  }
  // And the other way: what is recorded is shown.
  const queried = all.map(({ expr }) => expr).join('\n');
  const own = [...text.matchAll(/^# TYPE (tapedeck_\w+)/gm)].map(([, name = '']) => name);
  for (const name of own) expect(queried, name).toContain(name);
});

testWith('promtool')('Prometheus accepts the rules', () => {
  const file = join(DEPLOY, 'prometheus/alerts.yaml');
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' });
  expect(status, stdout + stderr).toBe(0);
});

test('each file is named in the list, with how it was checked', () => {
  const list = textOf('README.md');
  const folders = readdirSync(DEPLOY, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name } of folders) expect(list).toContain(`\`${name}/`);
});
