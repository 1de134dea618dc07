// SPDX-License-Identifier: GPL-2.0-or-later
//
// Zoom, search and tooltips for the flame graph. The picture is complete
// without this. Texts of the profiled service are only ever read from the
// document and set as textContent.
"use strict";
(function () {
        const ROW = 18, SIDE = 10, CHAR = 7.25, TIP_CHAR = 7.2, WIDTH_MIN = 640;
        const svg = document.documentElement;
        const byId = (id) => document.getElementById(id);
        const frames = [];
        const query = byId("query"), reset = byId("reset"), matched = byId("matched"), tip = byId("tip");
        let width = Number(svg.getAttribute("width"));
        let zoomed = null;

        for (const g of document.querySelectorAll("g.f")) {
                const title = g.querySelector("title");
                const lines = title.textContent.split("\n");

                title.remove();                 // the browser's own tooltip would come twice
                frames.push({
                        g: g, rect: g.querySelector("rect"), text: g.querySelector("text"),
                        x: Number(g.dataset.x), n: Number(g.dataset.n), d: Number(g.dataset.d),
                        label: g.dataset.l, name: (lines[0] + " " + g.dataset.l).toLowerCase(), lines: lines,
                });
        }

        // As the writer cuts a label: its end tells it apart.
        function fit(label, room) {
                const chars = Math.floor((room - 6) / CHAR), all = Array.from(label);

                if (chars < 3)
                        return "";
                return all.length <= chars ? label : "\u2026" + all.slice(all.length - chars + 1).join("");
        }

        function place(f, x, w) {
                f.rect.setAttribute("x", x.toFixed(2));
                f.rect.setAttribute("width", Math.max(w, 0).toFixed(2));
                f.text.setAttribute("x", (Math.max(x, SIDE) + 4).toFixed(2));
                f.text.textContent = fit(f.label, w);
        }

        function layout() {
                const to = zoomed || frames[0], inner = width - 2 * SIDE;

                if (!to)
                        return;
                for (const f of frames) {
                        const inside = f.x >= to.x && f.x + f.n <= to.x + to.n && f.d >= to.d;
                        const above = f.d < to.d && f.x <= to.x && f.x + f.n >= to.x + to.n;
                        const w = above ? inner : f.n / to.n * inner;

                        f.g.style.display = (inside || above) && w > 0.1 ? "" : "none";
                        f.g.classList.toggle("above", above);
                        if (above)
                                place(f, SIDE, inner);
                        else if (inside)
                                place(f, SIDE + (f.x - to.x) / to.n * inner, w);
                }
                reset.disabled = zoomed === null && query.value === "";
        }

        function zoom(f) {
                zoomed = f && f.d > 0 ? f : null;
                layout();
        }

        // Samples in frames that match; one inside of another counts once. Frames come parent first.
        function search() {
                const wanted = query.value.trim().toLowerCase();
                let samples = 0, until = -1;

                for (const f of frames) {
                        const found = wanted !== "" && f.name.includes(wanted);

                        f.g.classList.toggle("found", found);
                        if (found && f.x >= until) {
                                samples += f.n;
                                until = f.x + f.n;
                        }
                }
                matched.textContent = wanted === "" || frames.length === 0 ? ""
                        : "Matched: " + (100 * samples / frames[0].n).toFixed(1) + "%";
                reset.disabled = zoomed === null && query.value === "";
        }

        function showTip(f, event) {
                const texts = tip.querySelectorAll("text"), box = tip.querySelector("rect");
                let w = 0;

                for (let i = 0; i < texts.length; i++) {
                        texts[i].textContent = fit(f.lines[i] || "", width - 40);
                        w = Math.max(w, texts[i].getComputedTextLength());
                }
                const h = 12 + 16 * f.lines.length;
                const x = Math.min(event.pageX + 12, width - w - 24);
                const below = event.pageY + 18, y = below + h > Number(svg.getAttribute("height")) ? event.pageY - h - 8 : below;

                box.setAttribute("width", w + 18);
                box.setAttribute("height", h);
                tip.setAttribute("transform", "translate(" + Math.max(x, 4) + "," + Math.max(y, 4) + ")");
                tip.style.visibility = "visible";
        }

        function resize() {
                // Without the scroll bar, which the inner width of the window includes.
                const visible = window.visualViewport ? window.visualViewport.width : window.innerWidth;

                width = Math.max(WIDTH_MIN, Math.floor(visible) || width);
                svg.setAttribute("width", width);
                svg.setAttribute("viewBox", "0 0 " + width + " " + svg.getAttribute("height"));
                byId("controls").setAttribute("transform", "translate(" + (width - 1200) + ",0)");
                layout();
        }

        for (const f of frames) {
                f.g.addEventListener("click", () => zoom(f));
                f.g.addEventListener("mousemove", (event) => showTip(f, event));
                f.g.addEventListener("mouseleave", () => { tip.style.visibility = "hidden"; });
        }
        query.addEventListener("input", search);
        reset.addEventListener("click", () => { query.value = ""; search(); zoom(null); });
        window.addEventListener("keydown", (event) => {
                if (event.key === "Escape")
                        reset.click();
                else if (event.key === "/" && event.target !== query) {
                        event.preventDefault();
                        query.focus();
                }
        });
        window.addEventListener("resize", resize);
        byId("controls").style.visibility = "visible";
        resize();
        search();
})();
