// An opt-in poll: that somebody answers is no secret here, what they answer is. So the page answers when a choice is
// made. A page that measures quietly calls `tick` on its own schedule, whatever was recorded: silence would tell.
import { connect } from "./hubbub.mjs";

const FIELD = "used";
const at = (id) => document.getElementById(id);
const say = (text) => {
  at("said").textContent = text;
};
const epsilon = (units) => (Number(units) / 1e12).toLocaleString("en", { maximumFractionDigits: 2 });

let client;

/** How long a promise is for, in words: a step is a day, or some other stretch of time. */
function named({ steps, interval }) {
  const day = interval === 86_400_000;
  if (steps > 1) return `${steps} ${day ? "days" : "steps"}`;
  return steps === 0 ? "For life" : day ? "Today" : "This step";
}

async function show() {
  const status = await client.status();
  at("spent").textContent = epsilon(status.lifetime);
  at("waiting").textContent = status.pending;
  const whole = status.promises.filter(({ scope }) => scope === "asks");
  const meters = whole.map(({ spent, limit, ...promise }) => {
    const row = document.createElement("label");
    row.className = "meter";
    row.append(named(promise), bar(spent, limit), `${epsilon(spent)} of ${epsilon(limit)}`);
    return row;
  });
  at("meters").replaceChildren(...meters);
  return status;
}

function bar(spent, limit) {
  const meter = document.createElement("progress");
  meter.max = 1;
  meter.value = Number(spent) / Number(limit);
  return meter;
}

async function choose(button) {
  for (const other of at("choices").children) other.setAttribute("aria-pressed", other === button);
  const before = (await client.status()).lifetime;
  await client.record(FIELD, button.textContent);
  await client.tick();
  const status = await show();
  const refused = Object.values(status.refused)[0];
  if (status.lifetime > before) {
    say(
      status.pending
        ? `You picked ${button.textContent}. A randomised answer waits for the network.`
        : `You picked ${button.textContent}. A randomised answer has gone out: it may name another.`,
    );
  } else if (refused) {
    say(`Nothing was said: ${refused}.`);
  } else {
    say("You have answered already. Come back in the next step.");
  }
}

try {
  const settings = await (await fetch("settings.json")).json();
  client = await connect({ server: location.origin, ...settings });
  const buttons = client.collection.fields[FIELD].names.map((name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.className = /^[\x20-\x7e]+$/.test(name) ? "word" : "";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => choose(button));
    return button;
  });
  at("choices").replaceChildren(...buttons);
  addEventListener("online", () => setTimeout(show, 500));
  await show();
  say("Nothing has been said yet.");
} catch (error) {
  say(`There is no poll here: ${error.message}`);
}
