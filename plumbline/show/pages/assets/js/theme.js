// Light and dark: as the system has it, or as chosen here. Colours stand in style.css only.

const THEMES = ['auto', 'light', 'dark'];
const listeners = [];
const systemDark = matchMedia('(prefers-color-scheme: dark)');
let theme = remembered();
let printing = false;

function remembered() {
  try {
    const known = localStorage.getItem('plumb-theme');
    return THEMES.includes(known) ? known : 'auto';
  } catch {
    return 'auto'; // storage is off: the choice holds while the page is open
  }
}

function isDark() {
  return !printing && (theme === 'dark' || (theme === 'auto' && systemDark.matches));
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
for (const name of ['beforeprint', 'afterprint']) {
  addEventListener(name, () => {
    printing = name === 'beforeprint'; // paper is light
    applyTheme();
  });
}
applyTheme();

/** A colour of style.css by the name of its variable. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
