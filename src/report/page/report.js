// Shows the data of a report. Whatever comes from files (names, errors, settings) becomes text nodes, never markup.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const runs = data.runs || [];
  const columns = data.slides || {};
  const pictures = data.pictures || {};
  const count = (columns.path || []).length;
  const unit = data.value ? data.value.unit : '';
  const figures = data.figures || {};
  // Runs that analysed no spectra have neither windows nor distances.
  const spectrum = runs.some((run) => run.spectrum);

  // Small helpers

  const byId = (id) => document.getElementById(id);

  /** An element with attributes and children; strings become text. */
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name === 'class') element.className = value;
      else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
  const grouped = (value) => isNumber(value) ? value.toLocaleString('en') : '–';
  const fixed = (value, digits) => isNumber(value) ?
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }) : '–';
  const measured = (value) => fixed(value, unit === 'dB' || Math.abs(value) < 1000 ? 2 : 0);
  const unknown = 'not known';
  const withUnit = (text) => unit && text !== '–' ? `${text} ${unit}` : text;

  function short(value, always) {
    if (!isNumber(value)) return '–';
    for (const [size, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], ...(always ? [[1e3, 'k']] : [])]) {
      if (value >= size) return `${(value / size).toPrecision(3)} ${letter}`;
    }
    return `${grouped(value)}${always ? ' ' : ''}`;
  }

  function seconds(value) {
    if (!isNumber(value)) return '–';
    if (value >= 3600) return `${Math.floor(value / 3600)} h ${Math.floor(value % 3600 / 60)} min`;
    if (value >= 120) return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
    if (value >= 1) return `${value.toPrecision(3)} s`;
    if (value >= 1e-3) return `${(value * 1e3).toPrecision(3)} ms`;
    return value > 0 ? `${(value * 1e6).toPrecision(3)} µs` : '0 s';
  }

  const fileName = (path) => path.slice(path.replace(/\/+$/, '').lastIndexOf('/') + 1) || path;
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const some = (things, one, more) => `${grouped(things)} ${things === 1 ? one : more}`;

  /** A name that loses its middle where there is no room for it: what tells it from others is mostly at its ends. */
  function named(text) {
    const end = Math.min(14, Math.floor(text.length / 2));
    return make('span', { class: 'named' }, make('span', { class: 'start' }, text.slice(0, text.length - end)), make('span', {}, text.slice(text.length - end)));
  }

  /** The last part of an address, as text. */
  function linkName(address) {
    const name = fileName(address);
    try {
      return decodeURIComponent(name);
    } catch (error) {
      return name; // bytes that aren't UTF-8
    }
  }

  function bytesOf(text) {
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
    return bytes;
  }

  /** Numbers that were packed as [largest, base64 of 16 bits each]. */
  function unpack(packed) {
    const bytes = bytesOf(packed[1]);
    const values = new Float64Array(bytes.length / 2);
    for (let i = 0; i < values.length; ++i) values[i] = (bytes[2 * i] | bytes[2 * i + 1] << 8) / 65535 * packed[0];
    return values;
  }

  // Colours: viridis, which keeps its order for every kind of colour vision and in grey; lines after Okabe and Ito.

  const viridis = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129],
    [92, 200, 99], [170, 220, 50], [253, 231, 37]];

  function colour(part) {
    const place = Math.min(Math.max(part, 0), 1) * (viridis.length - 1);
    const below = Math.min(Math.floor(place), viridis.length - 2);
    return viridis[below].map((from, i) => Math.round(from + (viridis[below + 1][i] - from) * (place - below)));
  }
  const css = (rgb) => `rgb(${rgb.join(' ')})`;

  /** Black or white, whichever stands out more: by relative luminance, as WCAG defines contrast. */
  function readableOn(rgb) {
    const [r, g, b] = rgb.map((value) => value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000' : '#fff';
  }
  const ramp = (back) => {
    const stops = viridis.map(css);
    return `linear-gradient(to right, ${(back ? stops.reverse() : stops).join(', ')})`;
  };

  const lineColours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9'];
  const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
  const lineOf = (i) => ({ colour: lineColours[i % lineColours.length],
    dash: dashes[Math.floor(i / lineColours.length) % dashes.length] });

  /** Round numbers from low to high, about `wanted` of them. */
  function ticks(low, high, wanted) {
    if (!(high > low)) return [low];
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) found.push(i * step);
    return found;
  }
  const tickText = (value) => String(Number(value.toPrecision(6)));

  /** Marks and values under a scale from low to high. A value leans inwards the nearer it is to an end, so that none sticks out. */
  function tickRow(low, high, wanted, text) {
    const row = make('div', { class: 'ticks' });
    for (const value of ticks(low, high, wanted)) {
      const at = high > low ? (value - low) / (high - low) * 100 : 0;
      const mark = make('i');
      mark.style.left = `${at}%`;
      const label = make('b', {}, text(value));
      label.style.left = `${at}%`;
      label.style.transform = `translateX(-${at}%)`;
      row.append(mark, label);
    }
    return row;
  }

  /** A scale under a picture: a ramp of colours with values. */
  function scaleBar(low, high, label, back) {
    const bar = make('div', { class: 'ramp' });
    bar.style.background = ramp(back);
    const row = tickRow(low, high, 5, tickText);
    return make('div', { class: 'scalebar' }, bar, row, make('div', { class: 'quiet' }, label));
  }

  function show(id, name) {
    byId(id).hidden = false;
    byId('nav').append(make('li', {}, make('a', { href: `#${id}` }, name)));
  }

  // What is marked about a slide

  const isDone = (i) => columns.done[i] === 1;
  const isOutlier = (i) => {
    const fence = runs[columns.run[i]].fence;
    return isDone(i) && isNumber(fence) && columns.distance[i] > fence;
  };
  const isMarked = (i) => columns.missing[i] > 0 || columns.bad[i] > 0;
  const cohortName = (k) => data.cohorts.groups[k].name || '(none)';
  const runNames = (() => {
    const names = runs.map((run) => fileName(run.folder.replace(/\/+$/, '')) || run.folder);
    return names.map((name, i) => names.indexOf(name) === names.lastIndexOf(name) ? name : runs[i].folder);
  })();

  function marks(i) {
    const found = [];
    if (!isDone(i)) found.push(make('span', { class: 'mark bad' }, 'failed'));
    else if (columns.error[i]) found.push(make('span', { class: 'mark bad' }, 'an operator failed'));
    if (columns.bad[i] > 0) found.push(make('span', { class: 'mark bad' }, `${grouped(columns.bad[i])} bad`));
    if (columns.missing[i] > 0) found.push(make('span', { class: 'mark' }, `${grouped(columns.missing[i])} missing`));
    if (isOutlier(i)) found.push(make('span', { class: 'mark out' }, 'outlier'));
    return found;
  }

  // Overview

  function overview() {
    const sum = (values) => values.reduce((a, b) => a + (b || 0), 0);
    const all = data.all;
    const done = sum(runs.map((run) => run.done));
    const failed = sum(runs.map((run) => run.failed));
    const unfinished = sum(runs.map((run) => run.unfinished));
    let marked = 0;
    let outliers = 0;
    let pixels = 0;
    for (let i = 0; i < count; ++i) {
      marked += isMarked(i);
      outliers += isOutlier(i);
      if (isDone(i)) pixels += columns.width[i] * columns.height[i];
    }
    const figures = byId('figures');
    const add = (name, value, small, kind) => figures.append(make('div', { class: kind },
      make('dt', {}, name), make('dd', {}, value, small ? make('small', {}, small) : null)));
    add('Slides done', grouped(done));
    if (failed) add('Failed', grouped(failed), '', 'bad');
    if (unfinished) add('Not finished', grouped(unfinished), '', 'warn');
    if (marked) add('With marked tiles', grouped(marked), '', 'warn');
    if (outliers) add('Outliers', grouped(outliers));
    add('Pixels', short(pixels));
    const artifacts = sum(runs.map((run) => run.artifacts));
    if (artifacts) add('Files made', grouped(artifacts), `${short(sum(runs.map((run) => run.artifact_bytes)), true)}B`);
    if (spectrum) add('Windows', short(data.windows));
    if (all) {
      add('Mean', measured(all.mean), unit);
      add('Standard deviation', measured(all.std), unit);
      // Among values outside of the histogram's range a percentile isn't known.
      const [low, median, high] = ['5', '50', '95'].map((p) => all.percentiles[p]);
      add('Median', isNumber(median) ? measured(median) : unknown, isNumber(median) ? unit : '');
      const ends = [low, high].map((value) => isNumber(value) ? fixed(value, 1) : unknown);
      const both = isNumber(low) && isNumber(high);
      add('5 to 95 %', !isNumber(low) && !isNumber(high) ? unknown : ends.join(both ? ' – ' : ' to '), isNumber(high) ? unit : '', both ? null : 'words');
    }
    if (runs.length === 1 && isNumber(runs[0].seconds)) add('Last run took', seconds(runs[0].seconds));
    const notes = [];
    if (all && all.clipped > 0) notes.push(`${some(all.clipped, 'value lies', 'values lie')} outside the histogram's range.`);
    for (const [i, run] of runs.entries()) {
      if (run.interrupted === true) notes.push(`${runNames[i]} was interrupted.`);
    }
    if (unfinished) notes.push(`${some(unfinished, 'slide has', 'slides have')} no result yet.`);
    byId('notes').hidden = notes.length === 0;
    byId('notes').textContent = notes.join(' ');
    show('overview', 'Overview');
  }

  // Distribution

  const pinned = new Set();
  const muted = new Set();
  let selected = -1;
  let compare = 'nothing';
  let chart = null;

  function lines() {
    const found = [{ id: 'all', name: runs.length > 1 ? 'all slides of all runs' : 'all slides', shares: data.all.shares, area: true }];
    let next = 0;
    if (compare === 'runs') {
      runs.forEach((run, i) => run.statistics && found.push({ id: `run ${i}`, name: runNames[i], shares: run.statistics.shares, line: lineOf(next++) }));
    } else if (compare === 'cohorts') {
      data.cohorts.groups.forEach((group, i) => group.shares && found.push({ id: `cohort ${i}`, name: group.name || '(none)',
        shares: group.shares, line: lineOf(next++) }));
    }
    for (const i of pinned) {
      found.push({ id: `slide ${i}`, name: fileName(columns.path[i]), shares: columns.shares[i], line: lineOf(next++), slide: i });
    }
    if (selected >= 0 && count > 1 && !pinned.has(selected) && columns.shares[selected]) {
      found.push({ id: 'selected', name: `selected: ${fileName(columns.path[selected])}`, shares: columns.shares[selected],
        line: { colour: style('--ink'), dash: [] } });
    }
    return found;
  }

  function dataset(line) {
    const { low, step } = data.axis;
    const area = line.area === true;
    const edge = area ? style('--soft') : line.line.colour;
    return {
      label: line.name,
      data: Array.from(unpack(line.shares), (share, k) => ({ x: low + step * (k + 0.5), y: share / step * 100 })),
      borderColor: edge, backgroundColor: area ? style('--line') : edge, fill: area ? 'origin' : false,
      borderWidth: area ? 1 : 2, borderDash: area ? [] : line.line.dash, pointRadius: 0, pointHitRadius: 0,
      hidden: muted.has(line.id), order: area ? 9 : 1, parsing: false,
    };
  }

  const percentileLines = {
    id: 'percentileLines',
    afterDatasetsDraw(drawn) {
      const { ctx, chartArea, scales } = drawn;
      ctx.save();
      ctx.font = `12px ${getComputedStyle(document.body).fontFamily}`;
      ctx.textAlign = 'center';
      for (const p of ['5', '50', '95'].filter((one) => isNumber(data.all.percentiles[one]))) {
        const x = scales.x.getPixelForValue(data.all.percentiles[p]);
        ctx.strokeStyle = style('--soft');
        ctx.setLineDash([2, 4]);
        ctx.beginPath();
        ctx.moveTo(x, chartArea.top);
        ctx.lineTo(x, chartArea.bottom);
        ctx.stroke();
        ctx.fillStyle = style('--soft');
        ctx.fillText(p === '50' ? 'median' : `${p} %`, x, chartArea.top - 6);
      }
      ctx.restore();
    },
  };

  function drawChart() {
    if (!data.all || !data.axis.steps) return;
    const { low, step, steps } = data.axis;
    const logarithmic = document.querySelector('input[name=scale]:checked').value === 'logarithmic';
    const title = (text) => ({ display: true, text, color: style('--soft') });
    const shown = lines();
    // Flat windows, such as glass, pile up at the axis' beginning; what lies beyond it is what one wants to see.
    const seen = shown.filter((line) => !muted.has(line.id)).map((line) => unpack(line.shares));
    const beyond = Math.max(0, ...seen.map((values) => Math.max(0, ...values.slice(2)))) / step * 100;
    const highest = Math.max(0, ...seen.map((values) => Math.max(0, ...values))) / step * 100;
    const cut = !logarithmic && beyond > 0 && highest > 1.7 * beyond;
    const options = {
      animation: false, responsive: true, maintainAspectRatio: false, normalized: true,
      layout: { padding: { top: 18 } },
      interaction: { mode: 'index', intersect: false },
      scales: {
        x: { type: 'linear', min: low, max: low + step * steps, title: title(`${data.value.name}${unit ? `, ${unit}` : ''}`),
          grid: { display: false, borderColor: style('--line'), drawTicks: true, tickColor: style('--line') }, ticks: { color: style('--soft'), maxRotation: 0, includeBounds: false } },
        y: { type: logarithmic ? 'logarithmic' : 'linear', min: logarithmic ? undefined : 0, title: title(`% of values per ${unit || 'unit'}`),
          grid: { color: style('--line'), drawBorder: false, lineWidth: 0.5 },
          ticks: { color: style('--soft'), maxTicksLimit: 6, includeBounds: !cut, callback: (value) => tickText(value) } },
      },
      plugins: {
        legend: { display: false },
        tooltip: { callbacks: {
          title: (items) => items.length ? withUnit(`${fixed(items[0].parsed.x - step / 2, 1)} to ${fixed(items[0].parsed.x + step / 2, 1)}`) : '',
          label: (item) => ` ${item.dataset.label}: ${fixed(item.parsed.y, 3)} %`,
        } },
      },
    };
    if (cut) options.scales.y.max = Number((beyond * 1.15).toPrecision(2));
    byId('cut').hidden = !cut;
    byId('cut').textContent = `The peak at the left reaches ${fixed(highest, 1)} %: flat windows, such as glass. It is cut off here; the logarithmic scale shows it.`;
    if (chart) chart.destroy();
    // A logarithm of nothing is nowhere.
    const datasets = shown.map(dataset);
    if (logarithmic) for (const set of datasets) set.data = set.data.map((point) => point.y > 0 ? point : { x: point.x, y: NaN });
    if (logarithmic) for (const set of datasets) set.fill = set.fill ? 'start' : false;
    chart = new Chart(byId('chart'), { type: 'line', data: { datasets }, options, plugins: [percentileLines] });
    drawLegend(shown);
  }

  function drawLegend(shown) {
    const legend = byId('legend');
    legend.replaceChildren(...shown.map((line) => {
      const swatch = make('i');
      swatch.style.borderColor = line.area ? style('--soft') : line.line.colour;
      if (!line.area && line.line.dash.length) swatch.style.borderTopStyle = line.line.dash[0] > 5 ? 'dashed' : 'dotted';
      const toggle = () => {
        if (muted.has(line.id)) muted.delete(line.id);
        else muted.add(line.id);
        drawChart();
        legend.querySelectorAll('button')[shown.indexOf(line)]?.focus();
      };
      return make('li', {}, make('button', { type: 'button', 'aria-pressed': String(!muted.has(line.id)), title: line.name, onclick: toggle },
        swatch, named(line.name)));
    }));
  }

  function percentileTable() {
    const kinds = ['1', '5', '25', '50', '75', '95', '99'];
    const names = ['Slides', 'Mean', 'Std', ...kinds.map((p) => p === '50' ? 'Median' : `${p} %`)];
    const head = make('tr', {}, make('th', { scope: 'col' }, unit ? `in ${unit}` : ''), ...names.map((name) => make('th', { scope: 'col', class: 'number' }, name)));
    const row = (name, slides, found) => make('tr', {}, make('th', { scope: 'row', title: name }, named(name)),
      ...[grouped(slides), ...[found.mean, found.std, ...kinds.map((p) => found.percentiles[p])].map(measured)]
        .map((text) => make('td', { class: 'number' }, text)));
    const rows = [row('all slides', runs.reduce((sum, run) => sum + (run.spectrum ? run.done : 0), 0), data.all)];
    if (compare === 'runs') runs.forEach((run, i) => run.statistics && rows.push(row(runNames[i], run.done, run.statistics)));
    if (compare === 'cohorts') data.cohorts.groups.forEach((group) => group.shares && rows.push(row(group.name || '(none)', group.slides, group)));
    byId('percentiles').replaceChildren(make('thead', {}, head), make('tbody', {}, ...rows));
  }

  function distribution() {
    byId('distribution-lead').textContent =
      `How often each magnitude occurs among the ${short(data.all.values)} coefficients of all windows: ${data.value.name.replaceAll(' ', '\u00a0')}, in steps of ${tickText(data.axis.step)}${unit ? ` ${unit}` : ''}.`;
    const choices = [['nothing', 'Nothing']];
    if (runs.filter((run) => run.statistics).length > 1) choices.push(['runs', 'Runs']);
    if (data.cohorts && data.cohorts.groups.some((group) => group.shares)) choices.push(['cohorts', data.cohorts.column]);
    // The most telling comparison that there is.
    compare = choices[choices.length - 1][0];
    if (choices.length > 1) {
      for (const [value, name] of choices) {
        byId('compare').append(make('label', {}, make('input', { type: 'radio', name: 'compare', value, checked: value === compare,
          onchange: () => { compare = value; percentileTable(); drawChart(); } }), make('span', {}, name)));
      }
      byId('compare').hidden = false;
    }
    byId('scale').addEventListener('change', drawChart);
    percentileTable();
    show('distribution', 'Distribution');
  }

  // Statistics besides the distribution, whatever they are: each says its title, figures and series.

  function furtherChart(canvas, found) {
    const sets = [];
    found.forEach((statistic, i) => {
      for (const [name, series] of Object.entries(statistic ? statistic.series : {})) {
        const line = lineOf(sets.length);
        sets.push({
          label: [...(runs.length > 1 ? [runNames[i]] : []), name.replaceAll('_', ' ')].join(': '), series,
          data: series.values.map((value, k) => ({ x: series.first + series.step * k, y: isNumber(value) ? value : NaN })),
          borderColor: line.colour, backgroundColor: line.colour, borderDash: line.dash, borderWidth: 2, fill: false, pointRadius: 0,
          pointHitRadius: 0, parsing: false,
        });
      }
    });
    const title = (text) => ({ display: true, text, color: style('--soft') });
    const scale = (text) => ({ type: 'linear', title: title(text), grid: { color: style('--line'), lineWidth: 0.5 }, ticks: { color: style('--soft'), maxTicksLimit: 8 } });
    const options = {
      animation: false, responsive: true, maintainAspectRatio: false, normalized: true, interaction: { mode: 'index', intersect: false },
      scales: { x: scale(sets[0].series.axis), y: scale(sets[0].series.unit) },
      plugins: { legend: { display: sets.length > 1, labels: { color: style('--soft'), boxHeight: 1 } } },
    };
    return new Chart(canvas, { type: 'line', data: { datasets: sets }, options });
  }

  function further() {
    const redraws = [];
    for (const name of new Set(runs.flatMap((run) => Object.keys(run.further)))) {
      const found = runs.map((run) => run.further[name]);
      const first = found.find((statistic) => statistic);
      byId('further-list').append(make('h3', {}, first.title));
      if (Object.keys(first.series).length) {
        const canvas = make('canvas', { role: 'img', 'aria-label': first.title });
        byId('further-list').append(make('div', { class: 'chart' }, canvas));
        let drawn = null;
        redraws.push(() => { if (drawn) drawn.destroy(); drawn = furtherChart(canvas, found); });
      }
      const names = Object.keys(first.figures);
      if (names.length === 0) continue;
      const head = make('tr', {}, make('th', { scope: 'col' }, ''), ...runNames.map((run) => make('th', { scope: 'col', class: 'number' }, runs.length > 1 ? run : 'all slides')));
      const rows = names.map((figure) => make('tr', {}, make('th', { scope: 'row' }, figure.replaceAll('_', ' ')),
        ...found.map((statistic) => make('td', { class: 'number' }, figureText(statistic ? statistic.figures[figure] : null)))));
      byId('further-list').append(make('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': first.title },
        make('table', { class: 'plain' }, make('thead', {}, head), make('tbody', {}, ...rows))));
    }
    if (byId('further-list').children.length) show('further', 'Further statistics');
    return redraws;
  }

  const figureText = (value) => Number.isInteger(value) ? grouped(value) : fixed(value, 2);

  // What operators found of slides: shares, stains, numbers of tiles. Their figures have a dot in their names.

  const foundNames = Object.keys(figures).filter((name) => name.includes('.'));
  const isShare = (name) => /\.(share|clamped|saturated|class_\d+)$/.test(name);
  const isOfStain = (name) => /_(red|green|blue|maximum)$/.test(name);
  const foundText = (name, value) => !isNumber(value) ? '–' : isShare(name) ? `${fixed(value * 100, 2)}\u00a0%` : Number.isInteger(value) ? grouped(value) : fixed(value, 4);
  /** For people: "tissue share", "class 0", "white red". */
  const foundLabel = (name) => name.replace(/^.*\.(?=class_|white_)/, '').replace(/[._]/g, ' ');
  const foundOf = foundNames.map((name) => [name, new Map(figures[name])]);
  const found = new Map(foundOf);
  const foundAt = (name, i) => found.get(name).get(i);

  function findings() {
    const groups = data.cohorts ? data.cohorts.groups.map((_, k) => [cohortName(k), (i) => columns.cohort[i] === k]) :
      runs.map((_, k) => [runNames[k], (i) => columns.run[i] === k]);
    const rows = foundOf.map(([name, values]) => {
      const cells = [];
      for (const [, isIn] of groups) {
        const numbers = [...values].filter(([i]) => isIn(i)).map(([, value]) => value);
        const mean = numbers.length ? numbers.reduce((sum, value) => sum + value, 0) / numbers.length : null;
        const low = numbers.reduce((least, value) => Math.min(least, value), Infinity);
        const high = numbers.reduce((most, value) => Math.max(most, value), -Infinity);
        if (groups.length === 1) cells.push(grouped(numbers.length), foundText(name, mean), foundText(name, low), foundText(name, high));
        else cells.push(foundText(name, mean));
      }
      return make('tr', {}, make('th', { scope: 'row' }, name), ...cells.map((text) => make('td', { class: 'number' }, text)));
    });
    const titles = groups.length === 1 ? ['Slides', 'Mean', 'Lowest', 'Highest'] : groups.map(([name]) => name);
    const head = make('tr', {}, make('th', { scope: 'col' }, ''), ...titles.map((name) => make('th', { scope: 'col', class: 'number' }, name)));
    byId('findings-lead').textContent = groups.length === 1 ? 'Figures of the operators, over slides.' : 'Means over slides of the operators\' figures.';
    byId('findings-table').append(make('thead', {}, head), make('tbody', {}, ...rows));
    show('findings', 'Findings');
  }

  // The table of slides: only the rows that can be seen are in the document.

  const fields = [
    { key: 'pin', name: '', title: 'In the chart', width: 36, when: spectrum },
    { key: 'path', name: 'Slide', text: (i) => named(fileName(columns.path[i])), value: (i) => fileName(columns.path[i]).toLowerCase(), least: 220 },
    { key: 'run', name: 'Run', width: 110, when: runs.length > 1, wide: true, text: (i) => named(runNames[columns.run[i]]), value: (i) => columns.run[i] },
    { key: 'cohort', name: data.cohorts ? data.cohorts.column : '', width: 100, when: !!data.cohorts, wide: true,
      text: (i) => columns.cohort[i] === null ? '–' : cohortName(columns.cohort[i]), value: (i) => columns.cohort[i] },
    ...foundNames.map((name, k) => ({ key: `figure ${k}`, name: foundLabel(name), title: name, width: Math.max(96, Math.round(foundLabel(name).length * 7.2) + 30), number: true, result: true,
      wide: k > 0 || spectrum, screen: k > 2 || spectrum, value: (i) => foundAt(name, i), text: (i) => foundText(name, foundAt(name, i)) })),
    { key: 'files', name: 'Files', width: 68, when: !spectrum, number: true, result: true, value: (i) => columns.files[i].length,
      text: (i) => grouped(columns.files[i].length) },
    { key: 'mean', name: 'Mean', title: unit, when: spectrum, width: 72, number: true, result: true, text: (i) => measured(columns.mean[i]) },
    { key: 'std', name: 'Std', title: unit, when: spectrum, width: 68, number: true, result: true, wide: true, text: (i) => measured(columns.std[i]) },
    { key: 'distance', name: 'Distance', when: spectrum, title: `Wasserstein distance to the run's histogram${unit ? `, ${unit}` : ''}`, width: 86, number: true, result: true, wide: true,
      text: (i) => measured(columns.distance[i]) },
    { key: 'seconds', name: 'Time', width: 84, number: true, wide: true, result: true, text: (i) => seconds(columns.seconds[i]) },
    { key: 'marks', name: 'Marks', width: 152, value: (i) => (isDone(i) ? 0 : 1e15) + columns.bad[i] * 1e6 + columns.missing[i] * 1e2 + (isOutlier(i) ? 1 : 0) },
  ].filter((field) => field.when !== false);

  let order = [];
  let sortKey = null;
  let sortDown = false;
  let haystack = null;
  let printing = false;
  const narrow = matchMedia('(max-width: 600px)');
  // Paper can't be scrolled sideways, and a phone's screen has no room.
  const visibleFields = () => fields.filter((field) => !(field.wide && narrow.matches) && !(field.screen && printing));

  function find() {
    const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = byId('filter').value;
    haystack = haystack || columns.path.map((path, i) => `${path} ${columns.error[i]} ${columns.codec[i]} ${
      data.cohorts && columns.cohort[i] !== null ? cohortName(columns.cohort[i]) : ''}`.toLowerCase());
    const wanted = { all: () => true, done: isDone, failed: (i) => !isDone(i), marked: isMarked, outlier: isOutlier,
      pinned: (i) => pinned.has(i) }[kind];
    order = [];
    for (let i = 0; i < count; ++i) {
      if (wanted(i) && words.every((word) => haystack[i].includes(word))) order.push(i);
    }
    sort();
    byId('shown').textContent = order.length === count ? some(count, 'slide', 'slides') : `${grouped(order.length)} of ${some(count, 'slide', 'slides')}`;
    byId('grid').scrollTop = 0;
    drawRows(true);
  }

  function sort() {
    if (!sortKey) return;
    const field = fields.find((one) => one.key === sortKey);
    const value = field.value || ((i) => columns[field.key][i]);
    const sign = sortDown ? -1 : 1;
    const nothing = (v) => v === null || v === undefined;
    order = order.map((i) => [value(i), i]).sort(([a, i], [b, j]) => {
      // Slides without a value come last, whichever way.
      if (nothing(a) || nothing(b)) return nothing(a) - nothing(b) || i - j;
      return (a < b ? -sign : a > b ? sign : 0) || i - j;
    }).map(([, i]) => i);
  }

  const classOf = (field) => field.number ? 'number' : field.key === 'path' ? 'name' : null;

  function drawHead() {
    const widthOf = (field) => narrow.matches && field.key === 'marks' ? 104 : field.width;
    byId('columns').replaceChildren(...visibleFields().map((field) => {
      const column = make('col');
      if (field.width) column.style.width = `${widthOf(field)}px`;
      return column;
    }));
    // The column without a width takes what the others leave, and not less than names need: beyond that the table scrolls sideways.
    const least = visibleFields().reduce((sum, field) => sum + (widthOf(field) || (narrow.matches ? 120 : field.least)), 0);
    byId('table').style.minWidth = `${least}px`;
    byId('head').replaceChildren(make('tr', {}, ...visibleFields().map((field) => {
      if (field.key === 'pin') return make('th', { scope: 'col' }, make('span', { class: 'unseen' }, field.title));
      const sorted = sortKey === field.key ? (sortDown ? 'descending' : 'ascending') : null;
      return make('th', { scope: 'col', class: classOf(field), 'aria-sort': sorted },
        make('button', { type: 'button', title: field.title, onclick: () => {
          sortDown = sortKey === field.key ? !sortDown : field.number === true || field.key === 'marks';
          sortKey = field.key;
          sort();
          drawHead();
          drawRows(true);
          [...byId('head').querySelectorAll('button')].find((button) => button.textContent === field.name)?.focus();
        } }, field.name));
    })));
  }

  function row(place) {
    const i = order[place];
    const cells = [];
    let told = false;
    for (const field of visibleFields()) {
      if (field.key === 'pin') {
        const box = columns.shares[i] ? make('input', { type: 'checkbox', tabindex: '-1', 'aria-label': `Show ${fileName(columns.path[i])} in the chart`,
          onclick: (event) => { event.stopPropagation(); pin(i); } }) : null;
        if (box) box.checked = pinned.has(i);
        cells.push(make('td', { class: 'pin' }, box));
      } else if (field.key === 'marks') {
        if (!told || !narrow.matches) cells.push(make('td', {}, ...marks(i)));
      } else if (field.result && !isDone(i)) {
        // The reason takes the place of the results.
        if (!told) cells.push(make('td', { class: 'error', colspan: visibleFields().filter((one) => one.result || (narrow.matches && one.key === 'marks')).length, title: columns.error[i] }, named(columns.error[i])));
        told = true;
      } else {
        cells.push(make('td', { class: classOf(field), title: field.key === 'path' ? columns.path[i] : null }, field.text(i)));
      }
    }
    return make('tr', { class: 'row', id: `row-${i}`, 'aria-selected': String(i === selected), 'aria-rowindex': place + 2,
      onclick: () => select(i) }, ...cells);
  }

  let drawn = [-1, -1];
  const printedRows = 500;
  function drawRows(anew) {
    const grid = byId('grid');
    const height = parseFloat(style('--row'));
    const first = printing ? 0 : Math.max(0, Math.floor(grid.scrollTop / height) - 8);
    const end = printing ? Math.min(order.length, printedRows) : Math.min(order.length, first + Math.ceil((grid.clientHeight || 540) / height) + 24);
    if (!anew && drawn[0] === first && drawn[1] === end) return;
    drawn = [first, end];
    const spacer = (rows) => {
      const cell = make('td', { colspan: visibleFields().length });
      cell.style.height = `${printing ? 0 : rows * height}px`;
      return make('tr', { class: 'spacer', 'aria-hidden': 'true' }, cell);
    };
    const rows = [];
    if (first > 0) rows.push(spacer(first));
    for (let place = first; place < end; ++place) rows.push(row(place));
    if (end < order.length) {
      rows.push(printing ? make('tr', { class: 'empty' }, make('td', { colspan: visibleFields().length }, `and ${grouped(order.length - end)} more`)) : spacer(order.length - end));
    }
    if (order.length === 0) rows.push(make('tr', { class: 'empty' }, make('td', { colspan: visibleFields().length }, 'No slide is like that.')));
    byId('rows').replaceChildren(...rows);
    byId('table').setAttribute('aria-rowcount', order.length + 1);
  }

  function pin(i) {
    if (!columns.shares[i]) return;
    if (pinned.has(i)) pinned.delete(i);
    else pinned.add(i);
    drawRows(true);
    drawChart();
  }

  function select(i, follow) {
    selected = i;
    const place = order.indexOf(i);
    const grid = byId('grid');
    const height = parseFloat(style('--row'));
    if (follow && place >= 0) {
      const top = place * height;
      const room = grid.clientHeight - height;
      if (top < grid.scrollTop) grid.scrollTop = top;
      if (top + height > grid.scrollTop + room) grid.scrollTop = top + height - room;
    }
    drawRows(true);
    drawDetail();
    drawChart();
  }

  function keys(event) {
    if (event.target !== byId('grid') || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = order.indexOf(selected);
    const last = order.length - 1;
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: last, PageDown: place + 12, PageUp: place - 12 }[event.key];
    if (to !== undefined && last >= 0) {
      select(order[Math.min(Math.max(to, 0), last)], true);
    } else if (event.key === ' ' && place >= 0) {
      pin(selected);
    } else {
      return;
    }
    event.preventDefault();
  }

  function table() {
    const choices = [['all', 'All slides'], ['done', 'Done'], ['failed', 'Failed'], ['marked', 'With missing or bad tiles'],
      ...(spectrum ? [['outlier', 'Outliers'], ['pinned', 'In the chart']] : [])];
    byId('pin-hint').hidden = !spectrum;
    byId('filter').append(...choices.map(([value, name]) => make('option', { value }, name)));
    byId('search').addEventListener('input', find);
    byId('filter').addEventListener('change', find);
    byId('grid').addEventListener('scroll', () => requestAnimationFrame(() => drawRows(false)));
    byId('grid').addEventListener('keydown', keys);
    document.addEventListener('keydown', (event) => {
      if (event.key !== '/' || /INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) return;
      byId('search').focus();
      event.preventDefault();
    });
    narrow.addEventListener('change', () => { drawHead(); drawRows(true); });
    drawHead();
    show('slides', 'Slides');
    find();
  }

  // The selected slide: its thumbnail under its map of windows.

  const layer = { channel: 'mean', opacity: 0.5, same: false };
  const mapCells = new Map();

  function cellsOf(i, channel) {
    const key = `${i} ${channel}`;
    if (!mapCells.has(key)) mapCells.set(key, bytesOf(pictures.maps[i][channel].cells));
    return mapCells.get(key);
  }

  const rangeOfAll = {};
  function scaleOf(i, channel) {
    if (!layer.same) return pictures.maps[i][channel];
    if (!rangeOfAll[channel]) {
      const there = pictures.maps.filter(Boolean);
      rangeOfAll[channel] = { low: Math.min(...there.map((map) => map[channel].low)), high: Math.max(...there.map((map) => map[channel].high)) };
    }
    return rangeOfAll[channel];
  }

  function drawMap(canvas, i) {
    const map = pictures.maps[i];
    const own = map[layer.channel];
    const scale = scaleOf(i, layer.channel);
    const cells = cellsOf(i, layer.channel);
    canvas.width = map.columns;
    canvas.height = map.rows;
    const context = canvas.getContext('2d');
    const image = context.createImageData(map.columns, map.rows);
    for (let k = 0; k < cells.length; ++k) {
      const value = own.low + (own.high - own.low) * cells[k] / 255;
      const rgb = colour(scale.high > scale.low ? (value - scale.low) / (scale.high - scale.low) : 0.5);
      image.data.set([...rgb, 255], 4 * k);
    }
    context.putImageData(image, 0, 0);
    canvas.style.opacity = layer.opacity;
    // A window's cell is the step around its middle.
    const { window: side, stride } = runs[columns.run[i]].settings.analysis;
    const percent = (pixels, of) => `${100 * pixels / of}%`;
    const edge = (side - stride) / 2;
    canvas.style.left = percent(edge, columns.width[i]);
    canvas.style.top = percent(edge, columns.height[i]);
    canvas.style.width = percent(map.columns * map.block * stride, columns.width[i]);
    canvas.style.height = percent(map.rows * map.block * stride, columns.height[i]);
  }

  function stage(i, thumbnail, map) {
    const box = make('div', { class: 'stage' });
    const aspect = columns.width[i] / columns.height[i];
    if (thumbnail) {
      const picture = make('img', { alt: `Thumbnail of ${fileName(columns.path[i])}` });
      if (!isNumber(aspect)) picture.style.position = 'static';
      picture.src = `data:image/jpeg;base64,${thumbnail}`;
      box.append(picture);
    }
    if (isNumber(aspect)) {
      box.style.aspectRatio = String(aspect);
      box.style.maxWidth = `${Math.round(420 * aspect)}px`;
    }
    if (map) box.append(make('canvas', { id: 'map', role: 'img', 'aria-label': 'Map of the windows' }));
    return box;
  }

  const swatch = (rgb) => {
    const box = make('i', { class: 'swatch' });
    box.style.background = css(rgb);
    return box;
  };

  /** Files that were made of a slide, with pictures where there are some. */
  function filesOf(i) {
    const shown = new Map((pictures.made || [])[i] || []);
    const lacking = new Map((pictures.lacking || [])[i] || []);
    return make('ul', { class: 'files' }, ...columns.files[i].map(([maker, product, address, size], k) => {
      const name = linkName(address);
      const picture = shown.has(k) ? make('img', { alt: `${maker} ${product} of ${fileName(columns.path[i])}` }) : null;
      if (picture) picture.src = `data:image/jpeg;base64,${shown.get(k)}`;
      return make('li', {}, make('a', { href: address, title: name }, picture, named(name)), make('span', { class: 'quiet' }, `${maker} ${product}, ${short(size, true)}B`),
        lacking.has(k) ? make('span', { class: 'absent' }, `No picture: ${lacking.get(k)}.`) : null);
    }));
  }

  /** The stains that were found of a slide, each with its colour: light that passes it at an optical density of 1. */
  function stainsOf(i) {
    const stains = [...new Set(foundNames.filter((name) => /_maximum$/.test(name)).map((name) => name.replace(/_maximum$/, '')))]
      .filter((name) => isNumber(foundAt(`${name}_maximum`, i)));
    if (stains.length === 0) return null;
    const parts = ['red', 'green', 'blue'];
    const head = make('tr', {}, ...['Stain', 'Red', 'Green', 'Blue', 'Maximum'].map((name, k) => make('th', { scope: 'col', class: k ? 'number' : null }, name)));
    const rows = stains.map((name) => {
      const vector = parts.map((part) => foundAt(`${name}_${part}`, i));
      return make('tr', {}, make('th', { scope: 'row' }, swatch(vector.map((od) => Math.round(255 * Math.exp(-od)))), name.slice(name.indexOf('.') + 1)),
        ...[...vector, foundAt(`${name}_maximum`, i)].map((value) => make('td', { class: 'number' }, fixed(value, 3))));
    });
    return make('table', { class: 'plain' }, make('thead', {}, head), make('tbody', {}, ...rows));
  }

  function layerControls(i) {
    const bar = make('div');
    const refresh = () => {
      const canvas = byId('map');
      canvas.hidden = layer.channel === 'none';
      if (layer.channel === 'none') {
        bar.replaceChildren();
        return;
      }
      drawMap(canvas, i);
      const scale = scaleOf(i, layer.channel);
      const what = layer.channel === 'mean' ? 'Mean of a window' : 'Standard deviation within a window';
      const block = pictures.maps[i].block;
      bar.replaceChildren(scaleBar(scale.low, scale.high, `${what}${unit ? `, ${unit}` : ''}${block > 1 ? `; a cell averages ${block} × ${block} windows` : ''}`));
    };
    const radio = (value, name) => make('label', {}, make('input', { type: 'radio', name: 'layer', value, checked: layer.channel === value,
      onchange: () => { layer.channel = value; refresh(); } }), make('span', {}, name));
    const slider = make('input', { type: 'range', min: 0, max: 100, value: Math.round(layer.opacity * 100), 'aria-label': 'Opacity of the map',
      oninput: (event) => { layer.opacity = event.target.value / 100; byId('map').style.opacity = layer.opacity; } });
    const same = make('input', { type: 'checkbox', checked: layer.same, onchange: (event) => { layer.same = event.target.checked; refresh(); } });
    return [make('div', { class: 'layers' },
      make('fieldset', { class: 'segments' }, make('legend', {}, 'Map'), radio('mean', 'Mean'), radio('std', 'Std'), radio('none', 'Off')),
      make('label', { class: 'slider' }, 'Opacity', slider),
      count > 1 ? make('label', { class: 'check' }, same, 'Same scale for all slides') : null), bar, refresh];
  }

  function drawDetail() {
    const panel = byId('detail');
    const i = selected;
    if (i < 0) return panel.replaceChildren();
    const thumbnail = (pictures.thumbnails || [])[i];
    const map = (pictures.maps || [])[i];
    const parts = [make('h3', {}, fileName(columns.path[i])), make('p', { class: 'path' }, columns.path[i]), make('div', {}, ...marks(i))];
    if (columns.error[i]) parts.push(make('p', { class: 'error' }, columns.error[i]));
    if (thumbnail || map) parts.push(stage(i, thumbnail, map));
    if (!thumbnail) parts.push(make('p', { class: 'absent' }, `No thumbnail: ${(pictures.absent || [])[i] || 'not made'}.`));
    let refresh = null;
    if (map) {
      const [controls, bar, draw] = layerControls(i);
      parts.push(controls, bar);
      refresh = draw;
    } else if (isDone(i) && runs[columns.run[i]].spectrum) {
      parts.push(make('p', { class: 'absent' }, runs[columns.run[i]].settings.output.maps === 'none' ?
        'No map: the run made none (--maps npy or tiff).' : 'No map: none is there, or no room for it in this file.'));
    }
    const values = make('dl', { class: 'values' });
    const add = (name, value) => values.append(make('div', {}, make('dt', {}, name), make('dd', {}, value)));
    if (isNumber(columns.mean[i])) {
      add('Mean', withUnit(measured(columns.mean[i])));
      add('Std', withUnit(measured(columns.std[i])));
      add('5 %', withUnit(measured(columns.p05[i])));
      add('Median', withUnit(measured(columns.p50[i])));
      add('95 %', withUnit(measured(columns.p95[i])));
      add('Distance', withUnit(measured(columns.distance[i])));
    }
    if (isNumber(columns.windows[i])) add('Windows', grouped(columns.windows[i]));
    addFindings(i, add);
    if (isDone(i)) add('Time', seconds(columns.seconds[i]));
    if (isNumber(columns.width[i])) add('Size', `${columns.width[i]} × ${columns.height[i]}`);
    if (isNumber(columns.mpp[i])) add('Pixel', `${columns.mpp[i]} µm`);
    if (columns.codec[i]) add('Codec', `${columns.codec[i]}, ${columns.colour[i]}`);
    if (columns.clipped[i] > 0) add('Clipped', grouped(columns.clipped[i]));
    for (const [name, known] of Object.entries(figures).filter(([name]) => !found.has(name))) {
      const one = known.find(([slide]) => slide === i);
      if (one) add(name.replaceAll('_', ' '), figureText(one[1]));
    }
    if (data.cohorts) add(data.cohorts.column, columns.cohort[i] === null ? '–' : cohortName(columns.cohort[i]));
    if (runs.length > 1) add('Run', runNames[columns.run[i]]);
    parts.push(values);
    const stains = stainsOf(i);
    if (stains) parts.push(stains);
    if (columns.files[i].length) parts.push(make('h4', {}, 'Files'), filesOf(i));
    panel.replaceChildren(...parts);
    if (refresh) refresh();
  }

  /** What operators found of a slide, but for stains. */
  function addFindings(i, add) {
    for (const name of foundNames) {
      const value = foundAt(name, i);
      if (!isNumber(value) || (isOfStain(name) && !name.includes('.white_'))) continue;
      const label = /\.class_(\d+)$/.exec(name);
      add(label ? make('span', {}, swatch(data.class_colours[label[1] % data.class_colours.length]), foundLabel(name)) : foundLabel(name), foundText(name, value));
    }
  }

  // Outliers

  function outliers() {
    const most = 15;
    const far = [];
    for (let i = 0; i < count; ++i) if (isNumber(columns.distance[i])) far.push(i);
    if (far.length < 2) return;
    far.sort((a, b) => columns.distance[b] - columns.distance[a] || a - b);
    const number = far.filter(isOutlier).length;
    const fences = runs.map((run) => run.fence).filter(isNumber);
    byId('outliers-lead').textContent = 'Distance: first Wasserstein distance between a slide\'s histogram and that of its run, ' +
      `that is how far its values would have to be moved on average${unit ? `, in ${unit}` : ''}. ` +
      (fences.length ? `Outliers lie beyond the third quartile plus three quartile distances (dashed): ${number === 0 ? 'none does' : grouped(number) + (number === 1 ? ' does' : ' do')}.`
        : 'With fewer than eight slides none is called an outlier.');
    const longest = Math.max(columns.distance[far[0]], ...(number || !fences.length ? [0] : fences.map((f) => f)), 1e-9) * 1.02;
    byId('outlier-list').replaceChildren(...far.slice(0, most).map((i) => {
      const fill = make('div', { class: 'fill' });
      fill.style.width = `${columns.distance[i] / longest * 100}%`;
      const track = make('div', { class: 'track' }, fill);
      const fence = runs[columns.run[i]].fence;
      if (isNumber(fence) && fence <= longest) {
        const mark = make('div', { class: 'fence' });
        mark.style.left = `${fence / longest * 100}%`;
        track.append(mark);
      }
      return make('li', { class: isOutlier(i) ? 'far' : null },
        make('button', { type: 'button', title: columns.path[i], onclick: () => {
          byId('search').value = '';
          byId('filter').value = 'all';
          find();
          select(i, true);
          byId('slides').scrollIntoView();
          byId('grid').focus({ preventScroll: true });
        } }, named(fileName(columns.path[i]))), track, make('span', { class: 'amount' }, withUnit(measured(columns.distance[i]))));
    }));
    show('outliers', 'Outliers');
  }

  // Sweeps

  /** What runs after the choice say: those that it was chosen by flatter it. */
  function verdict(found, name) {
    const less = `${fixed((1 - found.seconds / found.base_seconds) * 100, 1)} % less time`;
    return `${name ? `${name}, once` : 'Once'} more against the base, after the choice: ${found.significant ? less : 'no significant difference'} ` +
      `(median ${seconds(found.seconds)} of ${some(found.runs, 'run', 'runs')} against ${seconds(found.base_seconds)} of ${grouped(found.base_runs)}; ` +
      `rank-sum test, one-sided p = ${fixed(found.probability, 3)}).`;
  }

  function sweep(found) {
    // A base off the grid would add a row and a column for itself.
    const regular = found.points.filter((point) => !point.base);
    const onGrid = (point) => !point.base || !regular.length || found.keys.length === 1 ||
      point.values.every((value, k) => regular.some((one) => one.values[k] === value));
    const points = found.points.filter(onGrid);
    const valuesOf = found.keys.map((_, k) => {
      const all = [...new Set(points.map((point) => point.values[k]))];
      return all.every((value) => value !== '' && Number.isFinite(Number(value))) ? all.sort((a, b) => a - b) : all;
    });
    const varying = found.keys.map((_, k) => k).filter((k) => valuesOf[k].length > 1);
    const axes = varying.slice(0, 2);
    if (axes.length === 0) axes.push(0);
    const others = varying.slice(2);
    const fixedAt = new Map(others.map((k) => [k, valuesOf[k][0]]));
    const times = points.map((point) => point.seconds).filter(isNumber);
    const box = make('div', { class: 'sweep' }, make('h3', {}, found.folder));
    if (times.length === 0) {
      box.append(make('p', { class: 'quiet' }, 'No run of it succeeded.'));
      return box;
    }
    const low = Math.min(...times);
    const high = Math.max(...times);
    const holder = make('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Heat map' });

    function cell(point) {
      if (!point || !isNumber(point.seconds)) {
        return make('td', { class: 'none', title: point ? point.note : 'not measured' }, point && point.note ? point.note.slice(0, 24) : '–');
      }
      const rgb = colour(high > low ? 1 - (point.seconds - low) / (high - low) : 1);
      const made = make('td', { class: point.seconds === low ? 'best' : point.base ? 'base' : null,
        title: `median of ${some(point.runs, 'run', 'runs')}, ${seconds(point.least)} to ${seconds(point.most)}` }, seconds(point.seconds));
      made.style.background = css(rgb);
      made.style.color = readableOn(rgb);
      return made;
    }

    function draw() {
      const [down, across] = axes.length > 1 ? axes : [axes[0], -1];
      const at = (y, x) => points.find((point) => point.values[down] === y && (across < 0 || point.values[across] === x) &&
        others.every((k) => point.values[k] === fixedAt.get(k)));
      const tops = across < 0 ? ['median'] : valuesOf[across];
      const head = [make('tr', {}, make('th', { scope: 'col', class: 'axis' }, found.keys[down]), ...tops.map((x) => make('th', { scope: 'col' }, x)))];
      if (across >= 0) head.unshift(make('tr', {}, make('td'), make('th', { class: 'axis', colspan: tops.length }, found.keys[across])));
      const body = valuesOf[down].map((y) => make('tr', {}, make('th', { scope: 'row' }, y), ...tops.map((x) => cell(at(y, x)))));
      holder.replaceChildren(make('table', { class: 'heat' }, make('thead', {}, ...head), make('tbody', {}, ...body)));
    }

    for (const k of others) {
      box.append(make('div', { class: 'tools' }, make('label', {}, `${found.keys[k]} `,
        make('select', { onchange: (event) => { fixedAt.set(k, event.target.value); draw(); } }, ...valuesOf[k].map((value) => make('option', { value }, value))))));
    }
    draw();
    // The base counts even where it is off the grid, and so not in the heat map.
    const measuredPoints = found.points.filter((point) => isNumber(point.seconds));
    const best = measuredPoints.reduce((least, point) => (point.seconds < least.seconds ? point : least));
    const base = found.points.find((point) => point.base && isNumber(point.seconds));
    const named = (point) => found.keys.map((key, k) => `${key} = ${point.values[k]}`).join(', ');
    box.append(holder, make('div', { class: 'heat-legend' }, scaleBar(low, high, 'seconds a run, median; yellow is faster', true)),
      make('p', {}, 'Fastest: ', make('strong', {}, named(best)), `, ${seconds(best.seconds)}` +
        (high > best.seconds ? `; the slowest takes ${fixed(high / best.seconds, 2)} times as long.` : '.') +
        (base === best ? ' It is the base.' : base ? ` The base (${named(base)}${points.includes(base) ? ', dashed' : ''}) takes ${seconds(base.seconds)}.` : '')));
    if (found.verdict) box.append(make('p', {}, verdict(found.verdict, found.points[found.verdict.winner] === best ? '' : named(found.points[found.verdict.winner]))));
    return box;
  }

  // Timeline of a traced run

  function timeline(found) {
    const rows = byId('timeline-rows');
    byId('timeline-lead').textContent = `${found.file}: ${seconds(found.seconds)}. The stronger the colour, the more pieces of work at a time. ` +
      'Busy: share of the time in which it worked; overlapped: share of that in which something else worked too.' +
      (found.dropped ? ` ${some(found.dropped, 'piece of work wasn\'t', 'pieces of work weren\'t')} recorded.` : '');
    const share = (part, whole) => whole > 0 ? `${fixed(part / whole * 100, 1)} %` : '–';
    rows.append(make('span', { class: 'head' }), make('span', { class: 'head wide-only' }), make('span', { class: 'head amount' }, 'busy'), make('span', { class: 'head amount' }, 'overlapped'));
    const canvases = [];
    for (const one of found.rows) {
      const canvas = make('canvas', { role: 'img', 'aria-label': `${one.name} over time` });
      canvases.push([canvas, unpack(one.load), one]);
      const cells = [make('span', {}, one.name), canvas, make('span', { class: 'amount' }, share(one.busy, found.seconds)), make('span', { class: 'amount' }, share(one.overlapped, one.busy))];
      rows.append(...(narrow.matches ? [cells[0], cells[2], cells[3], cells[1]] : cells));
    }
    // One unit for all of it.
    const [size, name] = found.seconds >= 1 ? [1, 's'] : found.seconds >= 1e-3 ? [1e-3, 'ms'] : [1e-6, 'µs'];
    const axis = tickRow(0, found.seconds, 6, (value) => found.seconds >= 120 ? seconds(value) : `${tickText(value / size)} ${name}`);
    axis.classList.add('axis');
    rows.append(axis);
    const draw = () => {
      for (const [canvas, load, one] of canvases) {
        canvas.width = load.length;
        canvas.height = 1;
        const context = canvas.getContext('2d');
        context.fillStyle = style(`--${one.kind === 'host' ? 'host' : one.kind === 'kernel' ? 'kernel' : 'copy'}`);
        load.forEach((value, x) => {
          // However short a piece of work, it can be seen.
          context.globalAlpha = Math.min(1, 0.25 + 0.75 * value / Math.max(1, one.most));
          if (value > 0) context.fillRect(x, 0, 1, 1);
        });
      }
    };
    draw();
    show('timeline', 'Timeline');
    return draw;
  }

  // How the runs went, settings, versions

  function course() {
    let any = false;
    runs.forEach((run, i) => {
      const stages = Array.isArray(run.stages) ? run.stages.filter((one) => one && typeof one === 'object') : [];
      if (stages.length === 0) return;
      any = true;
      const facts = [run.backend, isNumber(run.threads) ? some(run.threads, 'thread', 'threads') : null, seconds(run.seconds)].filter((text) => typeof text === 'string' && text);
      const overlap = run.overlap && typeof run.overlap === 'object' ? run.overlap : null;
      if (overlap && isNumber(overlap.gpu_busy_share)) facts.push(`GPUs computing ${fixed(overlap.gpu_busy_share * 100, 1)} % of the time`);
      if (overlap && isNumber(overlap.copy_hidden_share)) facts.push(`copies hidden behind kernels ${fixed(overlap.copy_hidden_share * 100, 1)} %`);
      const names = ['Stage', 'Busy', 'Waited', 'Items', 'Bytes', 'While busy'];
      const head = make('tr', {}, ...names.map((name, k) => make('th', { scope: 'col', class: k ? 'number' : null }, name)));
      const body = stages.map((one) => make('tr', {}, make('th', { scope: 'row' }, String(one.name)), ...[seconds(one.busy_seconds), seconds(one.wait_seconds),
        grouped(one.items), one.bytes > 0 ? `${short(one.bytes, true)}B` : '–', one.bytes > 0 && one.busy_seconds > 0 ? `${short(one.bytes / one.busy_seconds, true)}B/s` : '–']
        .map((text) => make('td', { class: 'number' }, text))));
      byId('run-list').append(make('div', { class: 'stages' }, runs.length > 1 ? make('h3', {}, runNames[i]) : null, make('p', { class: 'lead' }, facts.join(', ')),
        make('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Stages' }, make('table', { class: 'plain' }, make('thead', {}, head), make('tbody', {}, ...body)))));
    });
    if (any) show('run', 'How it ran');
  }

  function settings() {
    const text = (value) => value === undefined ? '–' : Array.isArray(value) ? value.join(', ') || '–' : value === '' ? '–' : String(value);
    const table = byId('settings-table');
    table.append(make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'Setting'), ...runNames.map((name) => make('th', { scope: 'col' }, runs.length > 1 ? name : 'Value')))));
    const body = make('tbody');
    const group = (name, parts) => {
      const keys = [...new Set(parts.flatMap((part) => part && typeof part === 'object' ? Object.keys(part) : []))];
      if (keys.length === 0) return;
      body.append(make('tr', { class: 'group' }, make('th', { scope: 'colgroup', colspan: runs.length + 1 }, name)));
      for (const key of keys) {
        const values = parts.map((part) => text(part ? part[key] : undefined));
        body.append(make('tr', { class: values.some((value) => value !== values[0]) ? 'differs' : null }, make('th', { scope: 'row' }, key), ...values.map((value) => make('td', {}, value))));
      }
    };
    const sections = [...new Set(runs.flatMap((run) => Object.keys(run.settings)))];
    for (const section of sections) group(`[${section}]`, runs.map((run) => run.settings[section]));
    group('Versions', runs.map((run) => run.versions));
    table.append(body);
    show('settings', 'Settings');
  }

  // All of it

  const title = runs.length ? runNames.join(', ') : (data.sweeps || []).map((one) => fileName(one.folder)).join(', ');
  document.title = title ? `${title} – slidestream report` : 'slidestream report';
  byId('subtitle').replaceChildren(named(title));
  byId('subtitle').title = [...runs.map((run) => run.folder), ...(data.sweeps || []).map((one) => one.folder)].join('\n');
  byId('made').textContent = `Made ${data.created} by slidestream ${data.version}. ` +
    (runs.length ? `Thumbnails are at most 256 pixels a side; they and maps are made coarser where that keeps this file under ${fixed(data.limit / 1e6, 0)} MB. ` : '') +
    'Charts by Chart.js (MIT licence).';

  const redraws = [];
  if (runs.length) {
    overview();
    if (data.all) distribution();
    if (data.all) redraws.push(...further());
    if (foundNames.length) findings();
    if (count > 0) {
      table();
      selected = order[0];
      drawDetail();
      drawRows(true);
      outliers();
    }
    if (data.all) redraws.push(drawChart);
  }
  if ((data.sweeps || []).length) {
    byId('sweep-list').append(...data.sweeps.map(sweep));
    show('sweeps', 'Sweeps');
  }
  if (data.timeline) redraws.push(timeline(data.timeline));
  if (runs.length) {
    course();
    settings();
  }
  const redraw = () => redraws.forEach((draw) => draw());
  redraw();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  const forPrint = (on) => {
    printing = on;
    if (count > 0) {
      drawHead();
      drawRows(true);
    }
    redraw();
  };
  addEventListener('beforeprint', () => forPrint(true));
  addEventListener('afterprint', () => forPrint(false));
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
