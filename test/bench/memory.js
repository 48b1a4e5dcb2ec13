// Memory of the tapedeck process: at the peak of one 64 MB message, and over a million messages.
import { callEcho, startClient } from './client.js';
import { format, median } from './figures.js';
import { variants } from './stdio.js';

const MB = 1024 * 1024;
const LINE_MB = 64;

/** When garbage is collected makes a tenth of the peak: the median of so many processes says more. */
const LARGE_ROUNDS = 3;

export async function benchMemory(folder, { messages, progress }) {
  if (process.platform !== 'linux') return [];
  const command = variants(folder).tapedeck;

  const peaks = [];
  for (let round = 0; round < LARGE_ROUNDS; round += 1) {
    progress(`one message of ${LINE_MB} MB, ${round + 1} of ${LARGE_ROUNDS}`);
    peaks.push(await peakOf(command));
  }

  progress(`${messages} messages through one process`);
  const many = await startClient(command);
  await callEcho(many, messages / 20, 16);
  await settle();
  const early = many.memoryMb('VmRSS');
  await callEcho(many, (messages * 9) / 20, 16);
  await settle();
  const late = many.memoryMb('VmRSS');
  await many.close();
  return [peakRow(peaks), flatRow(messages, early, late)];
}

async function peakOf(command) {
  const large = await startClient(command);
  const idle = large.memoryMb('VmRSS');
  await large.call('tools/call', { name: 'size', arguments: { text: 'x'.repeat(LINE_MB * MB) } });
  await settle();
  const peak = large.memoryMb('VmHWM');
  await large.close();
  return { idle, peak, ratio: (peak - idle) / LINE_MB };
}

/** What has passed is stored and indexed within moments; the figures are those after that. */
function settle() {
  return new Promise((resolve) => setTimeout(resolve, 3000));
}

function peakRow(peaks) {
  const of = (figure) => peaks.map((one) => one[figure]);
  const ratios = of('ratio');
  const range = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
  return {
    what: `one message of ${LINE_MB} MB peak memory`,
    tapedeck: `${format(median(of('peak')))} MB`,
    against: `${format(median(of('idle')))} MB idle`,
    ratio: `${median(ratios).toFixed(2)}× its size (${range})`,
    wanted: '< 3×',
    met: median(ratios) < 3 ? 'yes' : 'NO',
  };
}

function flatRow(messages, early, late) {
  return {
    what: `memory after ${messages.toLocaleString('en-US')} messages`,
    tapedeck: `${format(late)} MB`,
    against: `${format(early)} MB after a tenth`,
    ratio: `${(late / early).toFixed(2)}×`,
    wanted: '≤ 1.2×',
    met: late / early <= 1.2 ? 'yes' : 'NO',
  };
}
