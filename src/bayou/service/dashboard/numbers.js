// Numbers as text: with as many digits as they are worth.

const LARGE = 1e7, SMALL = 1e-3; // beyond these, powers of ten

const isKnown = (value) => value !== null && value !== undefined && Number.isFinite(value);
const powerOf = (value) => (value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value))));

// So many digits behind the point; fewer than none rounds before it.
function fixed(value, digits) {
  const behind = Math.min(Math.max(digits, 0), 20);
  const step = 10 ** Math.max(-digits, 0);
  const rounded = step > 1 ? Math.round(value / step) * step : value;
  return rounded.toLocaleString("en", { minimumFractionDigits: behind, maximumFractionDigits: behind });
}

function withPower(value, digits) {
  return Number(value.toPrecision(digits)).toExponential().replace("e+", "e");
}

export function number(value) {
  if (!isKnown(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e12 || (size > 0 && size < SMALL)) return withPower(value, 4);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return value.toLocaleString("en", { maximumSignificantDigits: Math.max(4, powerOf(value) + 1) });
}

// Values to the digits that an error allows, which is two of its own: 20,070 ± 340, or (1.20 ± 0.30)e-6.
function rounder(error, ...values) {
  if (!isKnown(error) || error <= 0 || !values.every(isKnown)) return { of: number, power: 0 };
  const power = powerOf(Math.max(error, ...values.map(Math.abs)));
  const scaled = power < powerOf(SMALL) || power >= powerOf(LARGE) ? power : 0;
  const digits = 1 - powerOf(error) + scaled;
  return { of: (value) => fixed(value / 10 ** scaled, digits), power: scaled };
}

export function withError(value, error) {
  if (!isKnown(error) || error <= 0) return number(value);
  const { of, power } = rounder(error, value);
  return power ? `(${of(value)} ± ${of(error)})e${power}` : `${of(value)} ± ${of(error)}`;
}

export function between(low, high, error) {
  const { of, power } = rounder(error, low, high);
  const times = power ? `e${power}` : "";
  return `${of(low)}${times} and ${of(high)}${times}`;
}

// A probability: near 0 and 1 with as many digits as it takes, up to six.
export function share(p) {
  const edge = Math.min(p, 1 - p);
  if (edge > 0 && edge < 1e-6) return p < 0.5 ? "< 0.000001" : "> 0.999999";
  return p.toFixed(edge > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(edge)), 3), 6) : 3);
}

// The same in two digits, for a column of them.
export function roundShare(p) {
  if (p > 0 && p < 0.005) return "< 0.01";
  if (p < 1 && p > 0.995) return "> 0.99";
  return p.toFixed(2);
}

// For ticks: 150k, 2.5M, 0.25, 2e-7.
export function short(value) {
  const size = Math.abs(value), round = (x) => Number(x.toPrecision(6));
  if (size >= 1e9 || (size > 0 && size < SMALL)) return withPower(value, 6);
  if (size >= 1e6) return `${round(value / 1e6)}M`;
  return size >= 1e4 ? `${round(value / 1e3)}k` : `${round(value)}`;
}
