"use strict";
(() => {
  const image = JSON.parse(document.getElementById("what").textContent);
  const whole = image.levels - 1; // the number of the largest level is its zoom
  const secondsBetweenTries = 2;
  const map = L.map("image", { crs: L.CRS.Simple, minZoom: 0, maxZoom: whole + 2, zoomSnap: 1, attributionControl: false });
  const bounds = L.latLngBounds(map.unproject([0, image.height], whole), map.unproject([image.width, 0], whole));

  // Under its partial name the page belongs to an image that is being written. Then its tiles' folder is renamed.
  let folder = /\.partial\.view\.html$/.test(decodeURIComponent(location.pathname)) ? image.partial : image.folder;
  let tries = 0;
  let known = null; // a tile that was there
  const missing = new Set();

  const path = (place) => `${encodeURIComponent(folder)}/${place}.jpg${tries ? `?${tries}` : ""}`;

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
      tile.place = `${coords.z}/${coords.x}_${coords.y}`;
      tile.ask = () => { picture.src = path(tile.place); };
      picture.onload = () => {
        picture.width = picture.naturalWidth * scale;
        picture.height = picture.naturalHeight * scale;
        picture.hidden = false;
        missing.delete(tile);
        known = tile.place;
        say();
        tell();
      };
      picture.onerror = () => {
        missing.add(tile);
        say();
        tell();
      };
      tile.appendChild(picture);
      tile.ask();
      return tile;
    },
  });
  const tiles = new Tiles({ tileSize: image.tile, minNativeZoom: 0, maxNativeZoom: whole, bounds, noWrap: true });
  tiles.on("tileunload", (event) => { missing.delete(event.tile); say(); });

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
  const last = () => `${encodeURIComponent(image.folder)}/0/0_0.jpg?${tries}`;
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

  tiles.addTo(map);
  map.fitBounds(bounds);
  map.setMaxBounds(bounds.pad(0.5));
  say();
  setInterval(tryAgain, 1000 * secondsBetweenTries);
  window.view = { map, tiles, missing, tryAgain };
})();
