// Numbers, sizes and times as people read them: the same rules as plumbline/base/units.py.

const DASH = '–';

/** [number, unit]: three to four significant digits; MB/s from 1000 on as GB/s. What is no number is shown as it is. */
function human(value, unit) {
  if (typeof value !== 'number') return [String(value), unit];
  if (unit === 'MB/s' && Math.abs(value) >= 1000) return [digits(value / 1000), 'GB/s'];
  if (unit === 'msg/s' && Math.abs(value) >= 1e6) return [digits(value / 1e6), 'Mmsg/s'];
  return [digits(value), unit];
}

function digits(value) {
  const magnitude = Math.abs(value);
  return fixed(value, magnitude >= 1000 ? 0 : magnitude >= 100 ? 1 : magnitude >= 10 ? 2 : 3);
}

/** Like toFixed, but a value half way between two goes to the even one, as everywhere else in the suite. */
function fixed(value, places) {
  const exact = value.toFixed(60);
  const cut = exact.indexOf('.') + 1 + places;
  if (!/^50*$/.test(exact.slice(cut))) return value.toFixed(places);
  const down = exact.slice(0, places ? cut : cut - 1);
  return Number(down.slice(-1)) % 2 ? value.toFixed(places) : down;
}

function withUnit(value, unit) {
  return human(value, unit).join(' ');
}

/** What to divide by, and the unit then, so that a whole axis or table has one unit. */
function scaleOf(values, unit) {
  const largest = values.reduce(
    (most, value) => (typeof value === 'number' ? Math.max(most, Math.abs(value)) : most),
    0,
  );
  if (unit === 'MB/s' && largest >= 1000) return [1000, 'GB/s'];
  if (unit === 'msg/s' && largest >= 1e6) return [1e6, 'Mmsg/s'];
  return [1, unit];
}

function percent(fraction, places = 1) {
  return `${fixed(100 * fraction, places)} %`;
}

function signed(fraction, places = 1) {
  const text = fixed(100 * fraction, places);
  return `${fraction >= 0 ? '+' : '−'}${text.replace('-', '')} %`;
}

/** 8 B, 64 KiB, 4 MiB; other counts stay bytes. */
function bytes(count) {
  for (const [unit, step] of [
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
    ['KiB', 2 ** 10],
  ]) {
    if (count >= step && count % step === 0) return `${count / step} ${unit}`;
  }
  return `${count} B`;
}

function time(text) {
  return text ? `${text.slice(0, 10)} ${text.slice(11, 19)} UTC` : DASH;
}

function median(values) {
  const sorted = values.filter((value) => typeof value === 'number').sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (!sorted.length) return NaN;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Smallest and largest of numbers, of which there may be more than a call takes arguments. */
function least(values) {
  return values.reduce((end, value) => (value < end ? value : end), Infinity);
}

function most(values) {
  return values.reduce((end, value) => (value > end ? value : end), -Infinity);
}

/** Widest distance of two launches as a fraction of the median; null where that says nothing. */
function spread(samples, middle) {
  const numbers = samples.filter((value) => typeof value === 'number');
  return numbers.length > 1 && middle > 0 ? (most(numbers) - least(numbers)) / middle : null;
}

function plural(count, thing, many = `${thing}s`) {
  return `${count} ${count === 1 ? thing : many}`;
}

/** A value of a record's circumstances in words. */
function plain(value) {
  if (value === null || value === undefined) return 'not readable';
  if (value === true) return 'on';
  if (value === false) return 'off';
  if (Array.isArray(value)) return value.map(plain).join(' ');
  if (typeof value === 'object') {
    return (
      Object.entries(value)
        .filter(([, inner]) => inner !== null)
        .map(([key, inner]) => `${key} ${plain(inner)}`)
        .join(', ') || 'no limits'
    );
  }
  return String(value);
}
