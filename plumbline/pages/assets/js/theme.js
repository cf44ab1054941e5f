// Light and dark: as the system has it, or as chosen here. Colours stand in style.css only.

const THEMES = ['auto', 'light', 'dark'];
const listeners = [];
const systemDark = matchMedia('(prefers-color-scheme: dark)');
let theme = remembered();

function remembered() {
  try {
    const known = localStorage.getItem('plumb-theme');
    return THEMES.includes(known) ? known : 'auto';
  } catch {
    return 'auto'; // storage is off: the choice holds while the page is open
  }
}

function isDark() {
  return theme === 'dark' || (theme === 'auto' && systemDark.matches);
}

function applyTheme() {
  document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  listeners.forEach((call) => call());
}

function onTheme(call) {
  listeners.push(call);
}

function themeButton() {
  const name = () => `Theme: ${theme}`;
  const button = h('button', { type: 'button', class: 'theme', title: 'Light, dark or as the system has it' }, name());
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem('plumb-theme', theme);
    } catch {
      /* storage is off */
    }
    button.textContent = name();
    applyTheme();
  });
  return button;
}

systemDark.addEventListener('change', applyTheme);
applyTheme();

/** A colour of style.css by the name of its variable. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The colours of stacks, in the order of their names: Okabe and Ito's palette. */
const STACK_COLOURS = 8;
const stackNames = [];

function stackColour(name) {
  return colour(`stack-${stackNames.indexOf(name) % STACK_COLOURS}`);
}

/** A dot in a stack's colour, beside its name. */
function stackSwatch(name) {
  return h('i', { class: 'swatch round', 'data-stack': String(stackNames.indexOf(name) % STACK_COLOURS) });
}

/** Marks and dashes of placements. */
const MARKS = ['circle', 'triangle', 'rect', 'diamond', 'pin', 'arrow', 'emptyCircle', 'emptyRect'];
const DASHES = ['solid', [6, 4], [2, 3], [10, 3, 2, 3], [1, 4], [12, 4], [4, 2], [8, 2, 2, 2, 2, 2]];

/** A colour between those of the theme's scale; `fraction` from 0 to 1. */
function ramp(fraction) {
  const stops = [0, 1, 2, 3, 4].map((number) => parseColour(colour(`ramp-${number}`)));
  const place = Math.min(Math.max(fraction, 0), 1) * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  return stops[below].map((part, i) => Math.round(part + (stops[below + 1][i] - part) * (place - below)));
}

function parseColour(text) {
  return [1, 3, 5].map((place) => parseInt(text.slice(place, place + 2), 16));
}

/** Black or white, whichever is read better on `rgb`. */
function readable([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? '#000000' : '#ffffff';
}

function css(rgb) {
  return `rgb(${rgb.join(', ')})`;
}
