/** The process driver passes the contract of every Compute driver. */
import { computeDriverContract } from '../contracts/compute-driver.ts';
import { openProcessWorld } from './process-world.ts';

computeDriverContract('The process driver', () => openProcessWorld());
