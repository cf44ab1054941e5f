// Elements are made here and nowhere else. Text becomes text nodes: no string of a record is ever parsed as markup.

const DASH = '–';

const data = await readData(document.getElementById('data'));

/** The page's data: as text, or compressed. */
async function readData({ type, textContent }) {
  if (type === 'application/json') return JSON.parse(textContent);
  const packed = Uint8Array.from(atob(textContent), (character) => character.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(plain).text());
}

/** h('a', {href: '#x', on: {click}}, 'text', node, [more]): an element. Attributes that are null or false are left out. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
    else if (name === 'style') for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** A wide thing that scrolls by itself: the keyboard stops there only while there is something to scroll. */
function scrolling(label, ...children) {
  const element = h('div', { class: 'scroll', role: 'region', 'aria-label': label }, ...children);
  overflows.observe(element);
  return element;
}

const overflows = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.setAttribute('tabindex', '0');
    else target.removeAttribute('tabindex');
  }
});

/** A folded part; its content is made when it is first opened. */
function folded(title, look, content) {
  const element = h('details', { class: look ?? 'folded' }, h('summary', null, title));
  element.addEventListener('toggle', () => {
    if (element.open && element.children.length === 1) element.append(content());
  });
  return element;
}

/** Buttons of which any number may be pressed. `items` are [key, mark, name]; `pressed` is the set of pressed keys. */
function toggles(label, items, pressed, changed) {
  const buttons = items.map(([key, ...shown]) => {
    const button = h('button', { type: 'button', class: 'toggle', 'aria-pressed': String(pressed.has(key)) }, shown);
    button.addEventListener('click', () => {
      if (!pressed.delete(key)) pressed.add(key);
      button.setAttribute('aria-pressed', String(pressed.has(key)));
      changed();
    });
    return button;
  });
  const attributes = { class: 'toggles', role: 'group', 'aria-label': label };
  return h('div', attributes, h('span', { class: 'label' }, label), buttons);
}

/** A labelled control. */
function labelled(label, control) {
  return h('label', { class: 'choice' }, h('span', { class: 'label' }, label), control);
}

/** A choice of one of `options`, [key, name]: the first, until another is chosen. */
function choice(label, options, changed) {
  const names = options.map(([key, name]) => h('option', { value: key }, name));
  const select = h('select', { on: { change: () => changed(select.value) } }, names);
  return labelled(label, select);
}

/** Words to look for; `changed` gets them. */
function searchField(placeholder, changed) {
  const words = () => field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const field = h('input', { type: 'search', placeholder, on: { input: () => changed(words()) } });
  return labelled('Search', field);
}

/** A text with a button that copies it. */
function copied(label, text) {
  const button = h('button', { type: 'button', class: 'copy', 'aria-label': `Copy: ${label}` }, 'Copy');
  button.addEventListener('click', async () => {
    const done = await copy(text);
    button.textContent = done ? 'Copied' : 'Select it';
    say(done ? `Copied: ${label}` : 'The browser does not allow copying: select the text');
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 2000);
  });
  return h('div', { class: 'command' }, h('pre', { tabindex: '0', 'aria-label': label }, text), button);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** For browsers that keep the clipboard from files. */
function copyBySelection(text) {
  const area = h('textarea', { class: 'hidden-text', 'aria-hidden': 'true', tabindex: '-1' });
  area.value = text;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

/** To those who hear the page. */
function say(text) {
  document.getElementById('said').textContent = text;
}

/** Verdicts of records and of the gate: a mark, so that nothing is said by colour alone, and what each means. */
const VERDICTS = {
  invalid: ['✕', 'not a figure: the reasons say why'],
  below: ['▼', 'worse than the range of its reference'],
  above: ['▲', 'better than the range of its reference'],
  unreferenced: ['○', 'not compared with anything'],
  within: ['✓', 'within the range of its reference'],
  GAIN: ['▲', 'certainly faster'],
  PASS: ['✓', 'a slowdown that matters is ruled out'],
  INCONCLUSIVE: ['○', 'neither is certain'],
  FAIL: ['▼', 'slower than tolerated'],
  INVALID: ['✕', 'nothing may be concluded'],
};

/** A verdict, or another `text` with its mark; where there is no text, only those who hear the page get the word. */
function badge(verdict, text) {
  const [mark, meaning] = VERDICTS[verdict] ?? ['?', ''];
  const attributes = { class: `badge ${verdict}`, title: (!text || text === verdict) && meaning };
  return h('span', attributes, h('span', { 'aria-hidden': 'true' }, mark), ' ', text || h('span', { class: 'hidden-text' }, verdict));
}
