// Trusted time where several pages of one site are open, on clocks that jump.
import assert from "node:assert/strict";
import { test } from "node:test";

const js = await import(process.env.HUBBUB_JS);

test("between an answer and any later look no more trusted time passes than true time, in however many pages", () => {
  // A small generator of its own: the same schedules in every run.
  let seed = 1;
  const draw = (below) => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 8) % below;
  const now = Object.getOwnPropertyDescriptor(performance, "now");
  let [time, wall, moved] = [0, 0, 0];
  try {
    for (let schedule = 0; schedule < 500; schedule++) {
      [time, wall] = [draw(1000), 1e6];
      const open = () => ({ watch: new js.DeviceClock(() => wall, false), opened: time });
      const pages = [open(), open(), open()];
      const answers = [];
      let book = js.newBook(wall, false);
      for (let turn = 0; turn < 40; turn++) {
        const passed = draw(3) ? draw(100) : 0;
        time += passed;
        wall += draw(4) ? passed : draw(2000) - 1000;
        const at = draw(3);
        if (!draw(6)) pages[at] = open();
        const { watch, opened } = pages[at];
        Object.defineProperty(performance, "now", { configurable: true, value: () => time - opened });
        const looked = watch.open(book);
        assert.ok(looked.trusted >= book.trusted);
        for (const answer of answers) assert.ok(looked.trusted - answer.trusted <= time - answer.time);
        moved += looked.trusted - book.trusted;
        if (draw(4)) book = looked; // else the transaction failed
        if (book === looked && !draw(3)) {
          answers.push({ trusted: looked.trusted, time });
          book = { ...looked, answers: looked.answers + 1, page: watch.page };
        }
      }
    }
  } finally {
    delete performance.now;
    if (now) Object.defineProperty(performance, "now", now);
  }
  assert.ok(moved > 100_000, `${moved}`);
});
