// SPDX-License-Identifier: Apache-2.0
// Runs tests of the suite against a cache: node run.mjs SUITE-FOLDER BASE-URL [ID…], all of them without an id. Prints of each its kind,
// what came of it, and which of the caches whose results come with the suite pass it.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [suite, base, ...ids] = process.argv.slice(2)
const load = file => import(pathToFileURL(path.join(suite, file)))
const fetch = createRequire(path.join(suite, 'package.json'))('node-fetch')
const { runTests, getResults } = await load('client/runner.mjs')
const all = (await load('tests/index.mjs')).default
const groups = [...all, (await load('tests/surrogate-control.mjs')).default]
const peers = (await load('results/index.mjs')).default.filter(peer => peer.type !== 'browser')
const published = peers.map(peer => JSON.parse(fs.readFileSync(path.join(suite, 'results', peer.file))))

const isWanted = test => test.browser_only !== true && (ids.length === 0 || ids.includes(test.id))
const wanted = groups.map(group => ({ ...group, tests: group.tests.filter(isWanted) }))
await runTests(wanted, fetch, false, base)
const results = getResults()
const verdict = test => ({
  id: test.id,
  kind: test.kind ?? 'required',
  passed: results[test.id] === true,
  why: results[test.id] === true ? '' : String(results[test.id]),
  passed_by: peers.filter((_, at) => published[at][test.id] === true).map(peer => peer.name)
})
console.log(JSON.stringify(wanted.flatMap(group => group.tests).map(verdict)))
