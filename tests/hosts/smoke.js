// smoke.js - the statements of smoke.test in a Node host.
//
//     node smoke.js better-sqlite3|node:sqlite|libsql ./bpe [FILE]
//
// The host loads the extension in its own documented way and runs FILE (default: smoke.test beside
// this file) in a fresh database. Then come the things that only a host can do: values bound, bytes
// given back. Refuses a file with anything that it does not understand, or with too few records:
// statements must not be lost between here and there. Last line: N passed, N failed.
'use strict';
const fs = require('fs');
const path = require('path');
const { createRequire } = require('module');

const LEAST_RECORDS = 50;

// Packages are in the folder of the working directory, not beside this file.
const load = createRequire(path.join(process.cwd(), 'package.json'));

function parseRecord(line, block) {
  let option = null;
  if (block[0].startsWith('onlyif option:')) option = block.shift().slice('onlyif option:'.length);
  const [head, ...rest] = block;
  if (!/^(statement ok$|statement error |query )/.test(head)) {
    throw new Error(`line ${line}: not understood: ${head}`);
  }
  const cut = rest.indexOf('----');
  if (head.startsWith('query ') !== (cut >= 0)) {
    throw new Error(`line ${line}: a query, and only that, has ----`);
  }
  const sql = (cut < 0 ? rest : rest.slice(0, cut)).join('\n');
  return { line, option, head, sql, expected: cut < 0 ? null : rest.slice(cut + 1) };
}

function parse(file) {
  const records = [];
  let block = [];
  let start = 0;
  [...fs.readFileSync(file, 'utf8').split('\n'), ''].forEach((text, i) => {
    if (text !== '') {
      if (block.length === 0) start = i + 1;
      block.push(text);
      return;
    }
    while (block.length > 0 && block[0].startsWith('#')) block.shift();
    if (block.length > 0) records.push(parseRecord(start, block));
    block = [];
  });
  return records;
}

// A value as the file has it; a type that is not the one wanted shows.
function shown(value, kind) {
  if (value === null) return 'NULL';
  const good = kind === 'I' ? Number.isInteger(value) : typeof value === 'string';
  return good ? String(value) : `${typeof value} ${value}`;
}

// null, or what is wrong.
function check(run, { option, head, sql, expected }) {
  if (option && run('SELECT sqlite_compileoption_used(?)', option)[0][0] === 0) return null;
  let rows;
  try {
    rows = run(sql);
  } catch (e) {
    const prefix = 'statement error ';
    const wanted = head.startsWith(prefix) ? head.slice(prefix.length) : null;
    return wanted && e.message.includes(wanted) ? null : `${e.name}: ${e.message}`;
  }
  if (head.startsWith('statement')) return head === 'statement ok' ? null : 'no error';
  const kinds = head.split(' ')[1];
  if (rows.some((row) => row.length !== kinds.length)) return 'another number of columns';
  const got = rows.map((row) => row.map((value, i) => shown(value, kinds[i])).join('|'));
  if (got.join('\n') === expected.join('\n')) return null;
  return `expected ${JSON.stringify(expected)}\n      got ${JSON.stringify(got)}`;
}

// [name, whether it holds] of what needs values from outside SQL.
function ownChecks(run) {
  const data = Buffer.from([0xff, 0x00, 0x61, 0xf0, 0x9f, 0x91, 0x8d, 0x00]);
  const back = run('SELECT bpe_decode_blob(bpe_encode_blob(?))', data)[0][0];
  const text = 'naïve 日本語 👍';
  const packed = run('SELECT bpe_encode_blob(?)', 'hello world')[0][0];
  const ids = JSON.parse(run('SELECT bpe_encode(?, ?)', 'hello world', 'cl100k_base')[0][0]);
  return [
    ['bytes bound', data.equals(Buffer.from(back))],
    ['text bound', run("SELECT bpe_decode(bpe_encode(?, 'gpt2'), 'gpt2')", text)[0][0] === text],
    ['ids read as JSON', ids.join() === '15339,1917'],
    ['ids as bytes', packed.length === 8],
    ['null', run('SELECT bpe_count(?)', null)[0][0] === null],
  ];
}

// ---- Hosts: each gives a function from SQL and values to rows -----------------------------------

const hosts = {
  'better-sqlite3': (extension) => {
    const db = new (load('better-sqlite3'))(':memory:');
    db.loadExtension(extension);
    return (sql, ...args) => {
      const statement = db.prepare(sql);
      return statement.reader ? statement.raw().all(...args) : (statement.run(...args), []);
    };
  },
  'node:sqlite': (extension) => {
    const { DatabaseSync } = require('node:sqlite');
    const db = new DatabaseSync(':memory:', { allowExtension: true });
    db.loadExtension(extension);
    return (sql, ...args) => {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      return statement.all(...args);
    };
  },
  libsql: (extension) => {
    const db = new (load('libsql'))(':memory:');
    db.loadExtension(extension);
    // A value that is an object must come in an array, or it is taken for names and values.
    return (sql, ...args) => {
      const statement = db.prepare(sql);
      return statement.reader ? statement.raw().all(args) : (statement.run(args), []);
    };
  },
};

function main([name, extension, file = path.join(__dirname, 'smoke.test')]) {
  if (!hosts[name] || !extension) throw new Error('usage: smoke.js HOST ./bpe [FILE]');
  const run = hosts[name](path.resolve(extension));
  console.log(`${name}, Node ${process.version}, SQLite ${run('SELECT sqlite_version()')[0][0]}`);
  const records = parse(file);
  const results = records.map((record) => [`${file}:${record.line}`, check(run, record)]);
  for (const [what, held] of ownChecks(run)) results.push([what, held ? null : 'wrong']);
  if (records.length < LEAST_RECORDS) results.push([file, `only ${records.length} records`]);
  const wrong = results.filter(([, why]) => why !== null);
  for (const [what, why] of wrong) console.log(`${what}: ${why}`);
  console.log(`${results.length - wrong.length} passed, ${wrong.length} failed`);
  process.exitCode = wrong.length > 0 ? 1 : 0;
}

main(process.argv.slice(2));
