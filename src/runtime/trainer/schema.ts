/** Tables of a trainer's object. Times are epoch milliseconds. */

/** Which weights there were from when on. Objects of earlier releases have no such table until it is asked for. */
export const SERVED_SCHEMA = `create table if not exists served (
  id integer primary key, at integer not null, version integer not null, newest integer not null, taken_back integer not null)`;

export const TRAINER_SCHEMA = [
  // Every batch there ever was: repeats of old calls are answered from here. `batch`: all of it, as JSON.
  `create table batches (
    batch_id text primary key, generation integer not null, step integer not null,
    state text not null, batch text not null)`,
  "create index batches_by_step on batches (step, generation)",
  `create table versions (
    generation integer not null, version integer not null, id text not null, failed integer not null,
    label text, location text, sha256 text, at integer not null,
    primary key (version, generation))`,
  SERVED_SCHEMA,
  // Reports that were taken, so that a repeat changes nothing.
  `create table reports (
    epoch integer not null, version integer not null, state text not null, replica text not null,
    primary key (epoch, version, state, replica)) without rowid`,
];
