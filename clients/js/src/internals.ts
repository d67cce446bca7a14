/** What the tests hold against the Python library; not part of the client. */
export { hex, unhex } from "./bytes";
export { deviceKey, holds, placeOnCircle, readArc } from "./cohort";
export { readDomain } from "./domain";
export { codeOf, missing } from "./fields";
export { admits } from "./ask";
export { Watch, newBook } from "./book";
export { Client } from "./client";
export { readCollection } from "./collection";
export { addPromises, charge } from "./promises";
export { openSealed } from "./sealed";
export { frame } from "./upload";
export { expBelow, fraction, spentBy, within } from "./exact";
export { bucket, fingerprint, mix32, product32 } from "./hash";
export { readMechanism } from "./mechanisms";
export { systemRandom } from "./random";
export { canonical, specId } from "./spec";
export { readView } from "./views";
