/** The directions of dependency between our folders, as rules. test/arrows/fixture breaks each once, to see it bite. */
const { join } = require('node:path');

const machinery = 'kernel|runtime|event-store|compute|reconcile|gateway|postgres|http|telemetry|cli|sagas';
/** A slice is a folder of src named after what it decides. */
const slice = `^src/(?!(${machinery})/)[^/]+/`;
const messages = `${slice}messages\\.ts$`;
/** Shapes that events, inputs and answers share. */
const shapes = `${slice}settings\\.ts$`;
/** What readers of a slice see, and the questions they may ask: projections answer them, edges ask them. */
const view = `${slice}view\\.ts$`;
/** Decisions: the file named as its slice, and those it is made of. */
const deciders = [
  `^src/(?!(?:${machinery})/)(?<name>[^/]+)/\\k<name>\\.ts$`,
  '^src/agent/(draft|lifecycle|work)\\.ts$',
  '^src/iam/(policy|rules|evaluate|coverage)\\.ts$',
  '^src/installation/register\\.ts$',
  '^src/deployment/texts\\.ts$',
];
const pure = [...deciders, messages, shapes];
const kernel = '^src/kernel/';
const ports = ['^src/event-store/event-store\\.ts$', '^src/compute/driver\\.ts$'];
const adapters = [
  '^src/event-store/(postgres|in-memory|eventstoredb)',
  '^src/compute/(process|kubernetes)/',
  '^src/postgres/embedded\\.ts$',
];
const edges = '^(schema/|src/http/)';
const ours = '^(src|schema|projections)/';
const driver = 'node_modules/(@types/)?pg/';
/** Libraries that compute and touch nothing. */
const pureLibraries = 'node_modules/(typebox|immutable)/';

const forbid = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });

module.exports = {
  forbidden: [
    forbid('no-cycles', 'A cycle is one module in several files.', {}, { circular: true }),
    // That package is types alone, and has no module to resolve to.
    forbid('no-unknown', 'Every import resolves.', {}, { couldNotResolve: true, pathNot: '^@graphql-typed-document-node/core$' }),
    forbid('product-not-on-tests', 'The product runs without its tests.', { path: ours }, { path: '^test/' }),
    forbid(
      'product-not-on-development-packages',
      'Only packages that npm installs for production.',
      { path: ours },
      { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    ),
    forbid(
      'kernel-is-the-ground',
      'The kernel imports nothing of ours.',
      { path: kernel },
      { path: ours, pathNot: kernel },
    ),
    forbid(
      'deciders-know-the-kernel',
      'Deciders import the kernel, messages, views and other deciders only.',
      { path: pure },
      { path: ours, pathNot: [kernel, view, ...pure] },
    ),
    forbid(
      'views-know-deciders',
      'A view shows what a fold holds; it knows nothing above it.',
      { path: view },
      { path: ours, pathNot: [kernel, '^src/runtime/', view, ...pure] },
    ),
    forbid(
      'deciders-are-pure',
      'No Node module and no driver: a decision is computed.',
      { path: pure },
      { dependencyTypes: ['core', 'npm', 'npm-optional'], pathNot: pureLibraries },
    ),
    forbid(
      'sagas-know-messages',
      'Sagas import messages, the kernel and the type of their runner.',
      { path: '^src/sagas/' },
      { path: ours, pathNot: [kernel, messages, '^src/(sagas|runtime)/'] },
    ),
    forbid(
      'sagas-are-pure',
      'No Node module and no driver: a step is computed.',
      { path: '^src/sagas/' },
      { dependencyTypes: ['core', 'npm', 'npm-optional'], pathNot: pureLibraries },
    ),
    forbid(
      'projections-know-messages',
      'Projections import messages, views, the kernel and the type of their runner.',
      { path: '^projections/' },
      { path: ours, pathNot: ['^projections/', kernel, messages, shapes, view, '^src/runtime/'] },
    ),
    forbid(
      'runners-are-types-below',
      'Projections, sagas and views name the types of their runner; the runner runs them.',
      { path: ['^(projections|src/sagas)/', view] },
      { path: '^src/runtime/', dependencyTypesNot: ['type-only'] },
    ),
    forbid(
      'services-know-the-port',
      'A use case knows the runtime and the ports, never a database, an adapter or an edge.',
      { path: slice, pathNot: [...pure, view] },
      { path: [edges, '^projections/', '^src/(event-store|compute|gateway|postgres|sagas)/', driver], pathNot: ports },
    ),
    forbid(
      'runtime-knows-no-domain',
      'The machinery works for any slice.',
      { path: '^src/runtime/' },
      { path: [slice, edges, '^projections/', '^src/(sagas|compute|gateway)/'] },
    ),
    forbid(
      'edges-call-services',
      'The edges reach the core through services and projection queries.',
      { path: edges },
      { path: [...deciders, '^src/(event-store|compute|gateway|postgres|sagas)/', driver] },
    ),
    forbid(
      'edges-know-messages-as-types',
      'An edge may name a message, not make one.',
      { path: edges },
      { path: messages, dependencyTypesNot: ['type-only'] },
    ),
    forbid(
      'adapters-only-in-compose',
      'Which driver runs is decided in compose, which store and server where both compose and the command line open them.',
      { path: ours, pathNot: ['^src/(compose|open-stores)\\.ts$', ...adapters] },
      { path: adapters },
    ),
    forbid(
      'ports-not-on-adapters',
      'An adapter knows its port and none of the other adapters.',
      { path: '^src/(event-store|compute)/([^/.]+)' },
      { path: adapters, pathNot: '^src/$1/$2' },
    ),
    forbid(
      'nothing-points-up',
      'main and cli start the product; nothing in it starts them, and only they use compose.',
      { path: ours, pathNot: '^src/(main\\.ts|cli\\.ts|cli/)' },
      { path: '^src/(main\\.ts|compose\\.ts|cli\\.ts|cli/)' },
    ),
    forbid(
      'main-composes',
      'main reads the configuration, composes, listens and drains; it chooses nothing.',
      { path: '^src/main\\.ts$' },
      { path: ours, pathNot: ['^src/(compose|config|launcher-link)\\.ts$', kernel, '^src/(telemetry|http)/'] },
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: join(__dirname, 'tsconfig.json') },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
    exclude: { path: '^test/arrows/fixture' },
  },
};
