"use strict";
(() => {
  const image = JSON.parse(document.getElementById("what").textContent);
  const whole = image.levels - 1; // the number of the largest level is its zoom
  const secondsBetweenTries = 2;
  const secondsBeforeTheFirst = 0.5; // between tries while no tile was there
  const levelsDeeper = 5; // where a tile isn't there yet, tiles of so many larger levels may stand in its place
  const map = L.map("image", { crs: L.CRS.Simple, minZoom: 0, maxZoom: whole + 2, zoomSnap: 1, attributionControl: false });
  const bounds = L.latLngBounds(map.unproject([0, image.height], whole), map.unproject([image.width, 0], whole));

  // Under its partial name the page belongs to an image that is being written. Then its tiles' folder is renamed.
  // Names of folders are percent-encoded already: they may have bytes that no text has.
  let folder = /\.partial\.view\.html$/.test(location.pathname) ? image.partial : image.folder;
  let tries = 0;
  let known = null; // a tile that was there
  const missing = new Set();

  const path = (place) => `${folder}/${place}.jpg${tries ? `?${tries}` : ""}`;

  const Tiles = L.GridLayer.extend({
    createTile(coords, done) {
      // The layer stretches what it is given to the size of a tile, which those at the edges don't have.
      const tile = document.createElement("div");
      const picture = document.createElement("img");
      const scale = this.getTileSize().x / image.tile;
      let told = false;
      const tell = () => {
        if (!told) setTimeout(() => done(null, tile), 0);
        told = true;
      };
      picture.alt = "";
      picture.hidden = true;
      picture.style.position = "absolute";
      tile.place = `${coords.z}/${coords.x}_${coords.y}`;
      tile.ask = () => { picture.src = path(tile.place); };
      picture.onload = () => {
        picture.width = picture.naturalWidth * scale;
        picture.height = picture.naturalHeight * scale;
        picture.hidden = false;
        removeInside(0, 0, 0);
        missing.delete(tile);
        known = tile.place;
        say();
        tell();
      };
      picture.onerror = () => {
        missing.add(tile);
        say();
        tell();
        if (!filling && coords.z < whole) {
          filling = true;
          fill(0, 0, 0).finally(() => { filling = false; });
        }
      };
      // Rows of larger levels come first: until the tile is there, those of them that lie inside it stand in its place.
      const parts = new Map();
      let filling = false;
      // Takes the tile (x, y) of those `deeper` levels below, or what is there of the ones inside it. Whether anything is.
      // Tiles are made row by row: where the first tile inside isn't there at any level, none is.
      const fill = async (deeper, x, y) => {
        const across = (coords.x << deeper) + x;
        const down = (coords.y << deeper) + y;
        const side = image.tile << (whole - coords.z - deeper); // in pixels of the image
        if (across * side >= image.width || down * side >= image.height) return false;
        const place = `${coords.z + deeper}/${across}_${down}`;
        if (deeper && (parts.has(place) || await show(place, deeper, x, y))) return true;
        if (deeper === levelsDeeper || coords.z + deeper === whole) return false;
        if (!await fill(deeper + 1, 2 * x, 2 * y)) return false;
        await Promise.all([[1, 0], [0, 1], [1, 1]].map(([right, below]) => fill(deeper + 1, 2 * x + right, 2 * y + below)));
        return true;
      };
      const removeInside = (deeper, x, y) => {
        for (const [place, { part, at }] of parts) {
          const more = at.deeper - deeper;
          if (more < 0 || at.x >> more !== x || at.y >> more !== y) continue;
          part.remove();
          parts.delete(place);
        }
      };
      const show = (place, deeper, x, y) => new Promise((there) => {
        const part = document.createElement("img");
        part.alt = "";
        part.onload = () => {
          if (missing.has(tile)) {
            known = place;
            const size = this.getTileSize().x / (1 << deeper);
            const smaller = scale / (1 << deeper);
            Object.assign(part.style, { position: "absolute", left: `${x * size}px`, top: `${y * size}px`,
                                        width: `${part.naturalWidth * smaller}px`, height: `${part.naturalHeight * smaller}px` });
            removeInside(deeper, x, y);
            parts.set(place, { part, at: { deeper, x, y } });
            tile.appendChild(part);
          }
          there(true);
        };
        part.onerror = () => there(false);
        part.src = path(place);
      });
      tile.appendChild(picture);
      tile.ask();
      return tile;
    },
  });
  const tiles = new Tiles({ tileSize: image.tile, minNativeZoom: 0, maxNativeZoom: whole, bounds, noWrap: true });
  tiles.on("tileunload", (event) => { missing.delete(event.tile); say(); });

  // Light or dark as the system is, until somebody chooses.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const isDark = () => chosen === null ? dark.matches : chosen;
  const paint = () => { document.documentElement.dataset.theme = isDark() ? "dark" : "light"; };
  dark.addEventListener("change", paint);
  paint();

  const toggleFull = () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen().catch(() => {}); // the browser may refuse
  };
  const buttons = L.control({ position: "topright" });
  buttons.onAdd = () => {
    const bar = L.DomUtil.create("div", "leaflet-bar");
    const add = (id, title, drawing, act) => {
      const button = L.DomUtil.create("button", "", bar);
      Object.assign(button, { id, type: "button", title, onclick: act });
      button.setAttribute("aria-label", title);
      button.innerHTML = `<svg viewBox="0 0 18 18" aria-hidden="true"><path d="${drawing}"/></svg>`;
    };
    if (document.fullscreenEnabled) add("full", "Full screen (f)", "M2 6V2h4M12 2h4v4M16 12v4h-4M6 16H2v-4", toggleFull);
    add("whole", "The whole image (0)", "M2 4h14v10H2z", () => fit());
    add("theme", "Light or dark (d)", "M9 2a7 7 0 1 0 7 8 5 5 0 0 1-7-8z", () => { chosen = !isDark(); paint(); });
    L.DomEvent.disableClickPropagation(bar);
    return bar;
  };
  buttons.addTo(map);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const id = { f: "full", 0: "whole", d: "theme" }[event.key];
    if (id) document.getElementById(id)?.click();
  });

  // How long a line is in the tissue, where the image says how large its pixels are.
  function measure() {
    const micrometres = image.mpp * 2 ** (whole - map.getZoom()); // per pixel of the screen
    const most = micrometres * 150;
    const power = 10 ** Math.floor(Math.log10(most));
    const length = [5, 2, 1].find((n) => n * power <= most) * power;
    const text = length >= 1000 ? `${length / 1000} mm` : `${Number(length.toPrecision(1))} µm`;
    document.querySelector("#scale div").style.width = `${length / micrometres}px`;
    document.querySelector("#scale span").textContent = text;
  }
  if (image.mpp > 0) {
    const scale = L.control({ position: "bottomright" });
    scale.onAdd = () => {
      const element = L.DomUtil.create("div");
      element.id = "scale";
      element.append(document.createElement("span"), document.createElement("div"));
      return element;
    };
    scale.addTo(map);
    map.on("zoom", measure);
  }

  const control = L.control({ position: "bottomleft" });
  control.onAdd = () => {
    const element = L.DomUtil.create("div");
    element.id = "state";
    element.setAttribute("role", "status");
    return element;
  };
  control.addTo(map);
  let said = "";
  function say() {
    const size = `${image.name} · ${image.width} × ${image.height}`;
    const rest = missing.size ? ` · ${missing.size} ${missing.size === 1 ? "tile isn't" : "tiles aren't"} there yet` : "";
    if (said === size + rest) return;
    said = size + rest;
    document.getElementById("state").textContent = said;
  }

  function probe(url, yes, no) {
    const picture = new Image();
    picture.onload = yes;
    picture.onerror = no;
    picture.src = url;
  }

  // Made last, and so a sign of a whole image, unless an earlier one has that name.
  const last = () => `${image.folder}/0/0_0.jpg?${tries}`;
  let wasThere = null; // not known yet
  if (folder !== image.folder) probe(last(), () => { wasThere = true; }, () => { wasThere = false; });

  function tryAgain() {
    ++tries;
    const again = () => { for (const tile of [...missing]) tile.ask(); };
    const finish = () => { folder = image.folder; again(); };
    if (!missing.size) return;
    if (folder === image.folder) return again();
    // Where a tile that was there is gone the image is whole, and has its final name.
    if (known !== null) return probe(path(known), again, finish);
    // No tile that is shown was there yet: the first of all is, or else the image began and ended in between.
    const first = `${whole}/0_0`;
    probe(path(first), () => { known = first; again(); }, () => {
      if (wasThere !== false) return again();
      probe(last(), finish, again);
    });
  }

  // Where nothing is there yet the image's place is grey.
  map.createPane("ground").style.zIndex = 100; // below the tiles
  L.rectangle(bounds, { pane: "ground", renderer: L.svg({ pane: "ground", padding: 1 }), stroke: false, interactive: false,
                        className: "ground", fillOpacity: 1 }).addTo(map);

  tiles.addTo(map);
  // The whole image fills the window, also when that changes, until somebody moves it. After that zooms are levels' own.
  let fits = true;
  let fitting = false;
  function fit() {
    fitting = true;
    map.options.zoomSnap = 0;
    map.fitBounds(bounds, { animate: false });
    map.options.zoomSnap = 1;
    fitting = false;
    fits = true;
  }
  map.on("movestart zoomstart", () => { fits = fits && fitting; });
  map.on("resize", () => { if (fits) fit(); });
  fit();
  map.setMaxBounds(bounds.pad(0.5));
  say();
  function later() {
    const seconds = known === null ? secondsBeforeTheFirst : secondsBetweenTries;
    setTimeout(() => { tryAgain(); later(); }, 1000 * seconds);
  }
  later();
  window.view = { map, tiles, missing, tryAgain, fit };
})();
