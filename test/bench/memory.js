// Memory of the tapedeck process: at the peak of one 64 MB message, and over a million messages.
import { callEcho, startClient } from './client.js';
import { format } from './figures.js';
import { variants } from './stdio.js';

const MB = 1024 * 1024;
const LINE_MB = 64;

export async function benchMemory(folder, { messages, progress }) {
  if (process.platform !== 'linux') return [];
  const command = variants(folder).tapedeck;

  progress('one message of 64 MB');
  const large = await startClient(command);
  const idle = large.memoryMb('VmRSS');
  await large.call('tools/call', { name: 'size', arguments: { text: 'x'.repeat(LINE_MB * MB) } });
  await settle();
  const peak = large.memoryMb('VmHWM');
  await large.close();

  progress(`${messages} messages through one process`);
  const many = await startClient(command);
  await callEcho(many, messages / 20, 16);
  await settle();
  const early = many.memoryMb('VmRSS');
  await callEcho(many, (messages * 9) / 20, 16);
  await settle();
  const late = many.memoryMb('VmRSS');
  await many.close();
  return [peakRow(idle, peak), flatRow(messages, early, late)];
}

/** What has passed is stored and indexed within moments; the figures are those after that. */
function settle() {
  return new Promise((resolve) => setTimeout(resolve, 3000));
}

function peakRow(idle, peak) {
  const ratio = (peak - idle) / LINE_MB;
  return {
    what: `one message of ${LINE_MB} MB peak memory`,
    tapedeck: `${format(peak)} MB`,
    against: `${format(idle)} MB idle`,
    ratio: `${ratio.toFixed(2)}× its size`,
    wanted: '< 3×',
    met: ratio < 3 ? 'yes' : 'NO',
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
