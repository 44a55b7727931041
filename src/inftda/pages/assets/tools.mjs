/* Elements, numbers, unpacking. Codes and names go in as text, never as markup. */

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'value') node.value = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export const h = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const s = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

const wholeFormat = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
export const whole = (value) => wholeFormat.format(value);

/* Short enough for a cell of a matrix: 9,999 then 12.3k then 4.5M. */
export function short(value) {
  const size = Math.abs(value);
  if (size < 1e4) return whole(value);
  for (const [unit, letter] of [[1e3, 'k'], [1e6, 'M'], [1e9, 'G']]) {
    const scaled = value / unit;
    if (Math.abs(scaled) < 999.5 || letter === 'G') {
      return (Math.abs(scaled) < 99.95 ? scaled.toFixed(1) : scaled.toFixed(0)) + letter;
    }
  }
  return whole(value);
}

/* Letters without accents and case, so that a search for "forli" finds "Forlì". */
export const folded = (text) => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

function bytesOf(base64) {
  const binary = atob(base64.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/* The packed data: length of the header, header as JSON, then planes of bytes of its arrays. */
export async function unpack(base64) {
  if (typeof DecompressionStream === 'undefined') {
    throw new Error('This browser is too old to unpack the numbers; any browser of 2023 or later can.');
  }
  const packed = new Blob([bytesOf(base64)]).stream();
  const plain = packed.pipeThrough(new DecompressionStream('gzip'));
  const buffer = await new Response(plain).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const bytes = new Uint8Array(buffer, 4 + length);
  const numbers = (name) => {
    const [start, n, width, least] = header.arrays[name];
    const out = new Float64Array(n).fill(least);
    for (let plane = 0; plane < width; plane += 1) {
      const [first, scale] = [start + plane * n, 256 ** plane];
      for (let i = 0; i < n; i += 1) out[i] += scale * bytes[first + i];
    }
    return out;
  };
  return { header, numbers };
}

/* Numbers of cells in ascending order, stored as the gaps between them. */
export function running(gaps) {
  for (let i = 1; i < gaps.length; i += 1) gaps[i] += gaps[i - 1];
  return gaps;
}

export function download(name, parts) {
  const url = URL.createObjectURL(new Blob(parts, { type: 'text/csv;charset=utf-8' }));
  const link = h('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* Write rows of a CSV file. A spreadsheet would run some texts as formulas: ' makes them plain text,
   by the rule of the page. Without a rule texts stay as they are. */
export function csvWriter(rule) {
  const formula = rule && new RegExp(rule.formula, 'g');
  const number = rule && new RegExp(`^(?:${rule.number})$`);
  const disarmed = (text) => (!rule || number.test(text) ? text : text.replace(formula, "$1$2'"));
  const cell = (value) => {
    const text = typeof value === 'string' ? disarmed(value) : String(value ?? '');
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  return (cells) => cells.map(cell).join(',') + '\n';
}
