/** Walk over a grid to a goal, one step per call. The walker's place is in the rollout's state; walls stop it. */
import { dataset, defineEnvironment, inject, type LiveState, type Messages, StatefulToolEnv, tool } from "rollcall";
import * as z from "zod";

/** Coordinates from 1 to the grid's size; up is y + 1. */
const Point = z.object({ x: z.int(), y: z.int() });
type Point = z.infer<typeof Point>;
const Task = z.object({ question: z.string(), size: z.int(), start: Point, goal: Point });
type Task = z.infer<typeof Task>;

/** The walker's place. A type, not an interface: only types are assignable to plain JSON. */
type Walk = { x: number; y: number; moves: number };

const STEPS = {
  up: { x: 0, y: 1 },
  down: { x: 0, y: -1 },
  left: { x: -1, y: 0 },
  right: { x: 1, y: 0 },
};

const move = tool({
  name: "move",
  description: "Walk one step. Up makes the second number larger, right the first.",
  parameters: z.object({ direction: z.enum(["up", "down", "left", "right"]) }),
  hidden: { walk: inject<LiveState<Task, Walk>>() },
  run: ({ direction, walk }) => {
    const { goal, size } = walk.task;
    // Calls in the same turn after the arrival change nothing.
    if (distance(walk, goal) > 0) {
      walk.x = within(size, walk.x + STEPS[direction].x);
      walk.y = within(size, walk.y + STEPS[direction].y);
      walk.moves += 1;
    }
    return distance(walk, goal) === 0 ? "You have arrived." : `You are at ${walk.x}, ${walk.y}.`;
  },
});

/** Ends the rollout with the reply to the last step: no reply of the model is needed. */
class GridWalkEnv extends StatefulToolEnv<Task, Walk> {
  override async envResponse(messages: Messages, state: LiveState<Task, Walk>): Promise<Messages> {
    const replies = await super.envResponse(messages, state);
    if (distance(state, state.task.goal) === 0) state.final_env_response = replies;
    return replies;
  }
}

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    size: z.int().min(2).max(20).default(4),
    // Calls made on the last turn are not run, and no goal is nearer than two steps.
    max_turns: z.int().min(3).default(5),
  }),
  build: ({ size, max_turns }) =>
    new GridWalkEnv({
      dataset: dataset(Task, (_index, random) => walkFor(size, max_turns - 1, random)),
      setupState: ({ task }) => ({ ...task.start, moves: 0 }),
      tools: [move],
      maxTurns: max_turns,
      updateToolArgs: (_name, args, _messages, state) => ({ ...args, walk: state }),
      stops: { arrived: { when: (state) => distance(state, state.task.goal) === 0, priority: 10 } },
      rubric: {
        rewards: {
          arrived: { weight: 0.7, fn: ({ state, task }) => distance(state, task.goal) === 0 },
          progress: { weight: 0.3, fn: ({ state, task }) => progress(state, task) },
        },
        metrics: { moves: ({ state }) => state.moves },
      },
    }),
});

/** The shortest path, for `rollcall env validate`: first horizontally, then vertically. */
export function goldPolicy(row: unknown) {
  const { start, goal } = Task.parse(row);
  const [across, up] = [goal.x - start.x, goal.y - start.y];
  return [
    ...Array.from({ length: Math.abs(across) }, () => (across > 0 ? "right" : "left")),
    ...Array.from({ length: Math.abs(up) }, () => (up > 0 ? "up" : "down")),
  ].map((direction) => ({ tool_calls: [{ name: "move", arguments: { direction } }] }));
}

/** Start and goal, at least two steps apart, and at most `reach`, as far as the grid allows. */
function walkFor(size: number, reach: number, random: () => number): Task {
  const upTo = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const span = size - 1;
  const steps = upTo(2, Math.min(reach, 2 * span));
  const across = upTo(Math.max(0, steps - span), Math.min(steps, span));
  const [startX, goalX] = ends(across);
  const [startY, goalY] = ends(steps - across);
  return {
    question: `Walk from ${startX}, ${startY} to ${goalX}, ${goalY}.`,
    size,
    start: { x: startX, y: startY },
    goal: { x: goalX, y: goalY },
  };

  /** Two coordinates with this distance, in either order. */
  function ends(apart: number): [number, number] {
    const low = upTo(1, size - apart);
    return random() < 0.5 ? [low, low + apart] : [low + apart, low];
  }
}

/** The fraction of the way that is done; 0 if the walker is no nearer than at the start. */
function progress(walk: Readonly<Point>, { start, goal }: Task): number {
  return Math.max(0, 1 - distance(walk, goal) / distance(start, goal));
}

/** Steps from one point to the other. */
function distance(from: Readonly<Point>, to: Readonly<Point>): number {
  return Math.abs(from.x - to.x) + Math.abs(from.y - to.y);
}

function within(size: number, coordinate: number): number {
  return Math.min(size, Math.max(1, coordinate));
}
