// Elements are made here and nowhere else. Text becomes text nodes: no string of a record is ever parsed as markup.

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

/** A section of the page; `about` is one line that says what it shows. */
function section(id, title, about, ...children) {
  return h(
    'section',
    { id, 'aria-labelledby': `${id}-title` },
    h('h2', { id: `${id}-title` }, title),
    about && h('p', { class: 'about' }, about),
    ...children,
  );
}

/**
 * A table. `columns` are {title, unit, number, head}: number aligns right, head makes it the row's header.
 * Cells are texts, nodes or lists of them. A wide one scrolls by itself, also with the keyboard.
 */
function table(caption, columns, rows, attributes = {}) {
  const head = columns.map((column) =>
    h(
      'th',
      { scope: 'col', class: column.number && 'number' },
      column.title,
      column.unit && h('span', { class: 'unit' }, ` ${column.unit}`),
    ),
  );
  const body = rows.map((cells) =>
    h(
      'tr',
      null,
      cells.map((cell, place) => {
        const column = columns[place];
        const kind = column.number ? 'number' : column.kind;
        return column.head ? h('th', { scope: 'row', class: kind }, cell) : h('td', { class: kind }, cell);
      }),
    ),
  );
  return scrolling(
    caption,
    h(
      'table',
      attributes,
      h('caption', { class: 'hidden-text' }, caption),
      h('thead', null, h('tr', null, head)),
      h('tbody', null, body),
    ),
  );
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

/** A list; `marks` gives it bullets. */
function bullets(items, marks = false) {
  return h(
    'ul',
    { class: !marks && 'plain' },
    items.map((item) => h('li', null, item)),
  );
}

/** A folded part; its content is made when it is first opened. */
function folded(title, content) {
  const element = h('details', { class: 'folded' }, h('summary', null, title));
  element.addEventListener('toggle', () => {
    if (element.open && element.children.length === 1) element.append(content());
  });
  return element;
}

/** Buttons of which any number may be pressed. `items` are {key, label, mark}; `changed` gets the set of pressed keys. */
function toggles(label, items, pressed, changed) {
  const draw = (item) => {
    const button = h(
      'button',
      { type: 'button', class: 'toggle', 'aria-pressed': String(pressed.has(item.key)) },
      item.mark,
      item.label,
    );
    button.addEventListener('click', () => {
      if (!pressed.delete(item.key)) pressed.add(item.key);
      button.setAttribute('aria-pressed', String(pressed.has(item.key)));
      changed(pressed);
    });
    return button;
  };
  return h(
    'div',
    { class: 'toggles', role: 'group', 'aria-label': label },
    h('span', { class: 'label' }, label),
    items.map(draw),
  );
}

/** A labelled choice. `options` are texts or {key, label}. */
function choice(label, options, chosen, changed) {
  const select = h(
    'select',
    { on: { change: () => changed(select.value) } },
    options.map((option) => {
      const { key, label: text } = typeof option === 'string' ? { key: option, label: option } : option;
      return h('option', { value: key, selected: key === chosen }, text);
    }),
  );
  return h('label', { class: 'choice' }, h('span', { class: 'label' }, label), select);
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

/** Names and values in two columns. */
function facts(caption, rows) {
  return h(
    'dl',
    { class: 'facts', 'aria-label': caption },
    rows.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))),
  );
}

/** A count in the head of a page. */
function tile(count, name, kind, mark) {
  return h(
    'div',
    { class: `tile ${kind || ''}` },
    h('b', null, mark && h('span', { class: 'glyph', 'aria-hidden': 'true' }, mark), count),
    h('span', null, name),
  );
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

/** A verdict, or another `text` with its mark; `alone` shows its mark only, and the word to those who hear the page. */
function badge(verdict, alone = false, text = verdict) {
  const [mark, meaning] = VERDICTS[verdict] ?? ['?', ''];
  return h(
    'span',
    { class: `badge ${verdict}`, title: text === verdict && meaning },
    h('span', { 'aria-hidden': 'true' }, mark),
    ' ',
    alone ? h('span', { class: 'hidden-text' }, verdict) : text,
  );
}

/** Where this page stands among those of its folder: links to the pages above it. */
function trail() {
  const steps = (data.trail ?? []).flatMap(([text, href]) => [h('a', { href }, text), ' › ']);
  return steps.length > 0 && h('p', { class: 'trail' }, steps);
}

/** Put head and sections into the page, with a link to each section. */
function layOut(head, sections) {
  document.getElementById('head').append(...[trail(), ...head].filter(Boolean));
  document.getElementById('main').replaceChildren(...sections);
  document.getElementById('sections').append(
    h(
      'ul',
      null,
      sections.map((item) => h('li', null, h('a', { href: `#${item.id}` }, item.querySelector('h2').textContent))),
    ),
  );
}
