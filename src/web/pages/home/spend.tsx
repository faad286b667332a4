/** What today and the last days cost. Each amount links to where it was spent. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Stat, Stats } from "../../components/stat.tsx";
import { costOfBuckets, totalText } from "../usage/cost.ts";
import { periodsAt } from "../usage/period.ts";
import { daysAsk, usageQuery } from "../usage/use-usage.ts";

export function Spend() {
  const now = Math.floor(Date.now() / 1000);
  const { data } = useQuery(usageQuery(daysAsk(now, {})));
  if (data === undefined) return null;
  return (
    <Stats>
      {periodsAt(now).map(({ id, name, start, end }) => {
        const days = data.data.filter(({ start_time }) => start_time >= start && start_time < end);
        return (
          <Stat
            key={id}
            name={`Cost of ${name}`}
            value={
              <Link to="/usage" search={{ period: id } as never}>
                {totalText(costOfBuckets(days))}
              </Link>
            }
          />
        );
      })}
    </Stats>
  );
}
