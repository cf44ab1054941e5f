// A page: its head, a link to each section that has data, the sections. On a narrow screen all but the first two are folded.

const steps = (data.trail ?? []).flatMap(([text, href]) => [h('a', { href }, text), ' › ']);
const sections = draw(data.sections);
const full = sections.filter(({ className }) => className !== 'empty');
const links = full.map((item) => h('li', null, h('a', { href: `#${item.id}` }, item.querySelector('h2').textContent)));
const title = h('div', { class: 'title' }, h('h1', null, draw(data.heading ?? data.title)), themeButton());
document.getElementById('head').append(h('p', { class: 'trail' }, steps), title, ...h('div', null, draw(data.head ?? [])).childNodes);
document.getElementById('main').replaceChildren(...sections);
document.getElementById('sections').append(h('ul', null, links));
if (full.length > 4 && matchMedia('(max-width: 720px)').matches) foldSections(full.slice(2));
prepareDetails();

function foldSections(items) {
  for (const item of items) {
    const [name, ...rest] = item.children;
    item.append(h('details', { class: 'part' }, h('summary', null, name), rest));
  }
  const open = (item) => item?.querySelector('details.part')?.setAttribute('open', '');
  document.getElementById('sections').addEventListener('click', ({ target }) => {
    if (target.hash) open(document.getElementById(target.hash.slice(1)));
  });
  addEventListener('beforeprint', () => items.forEach(open), { capture: true });
  if (location.hash) open(document.getElementById(location.hash.slice(1))?.closest('section'));
}
