"""One measurement of a release: a level of the tree or a cross table, and its noise."""

from dataclasses import dataclass, field
from fractions import Fraction

from msgspec.structs import asdict

from inftda.errors import BudgetError
from inftda.noise.distribution import Noise
from inftda.privacy.records import StatedLevel, StatedNoise, StatedTable
from inftda.privacy.unit import Sensitivity, Unit
from inftda.tree import CrossTable, TreeLevel
from inftda.util.exact_numbers import exact_number

#: Key of a measurement in a plan: the number of a level, or the depths of a cross table's axes.
Key = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A level of the tree or a cross table, and the noise that is added to each of its counts.

    Attributes:
        index: number of the level in the tree, 0 for the root; of a cross table that of the level
            whose step it belongs to.
        name: name of the level or cross table, for people.
        cells: number of cells.
        noise: distribution of the noise of each cell.
        sensitivity: largest change of the counts by one person.
        cross: for a cross table, the level of each axis's hierarchy, 0 where the axis is summed up;
            empty for a level of the tree.
        of_tree: the level or cross table itself; None in a plan that was read without its tree,
            which `Plan.on` finds.
    """

    index: int
    name: str
    cells: int
    noise: Noise
    sensitivity: Sensitivity
    cross: tuple[int, ...] = ()
    of_tree: TreeLevel | CrossTable | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, marginal: TreeLevel | CrossTable, unit: Unit, noise: Noise) -> "Measurement":
        """The measurement of a level or cross table with some noise."""
        return cls(
            index=marginal.index,
            name=marginal.name,
            cells=marginal.n_nodes,
            noise=noise,
            sensitivity=unit.sensitivity(marginal),
            cross=marginal.depths if isinstance(marginal, CrossTable) else (),
            of_tree=marginal,
        )

    @classmethod
    def from_stated(cls, stated: StatedLevel, unit: Unit) -> "Measurement":
        """The measurement that a manifest states."""
        sides = unit.sides(stated.index)
        return cls(
            index=stated.index,
            name=stated.name,
            cells=stated.cells,
            noise=Noise(exact_number(stated.noise.squared_scale), stated.noise.distribution),
            sensitivity=Sensitivity(stated.squared_sensitivity, sides, unit.trips),
            cross=stated.depths if isinstance(stated, StatedTable) else (),
        )

    @property
    def key(self) -> Key:
        """Key in the plan."""
        return self.cross or self.index

    @property
    def marginal(self) -> TreeLevel | CrossTable:
        """The level or cross table itself.

        Raises:
            BudgetError: the plan was read without its tree.
        """
        if self.of_tree is None:
            raise BudgetError("the plan was read without its tree; ask `Plan.on(tree)` first")
        return self.of_tree

    @property
    def level(self) -> TreeLevel:
        """The level itself, or the level in whose step the cross table is measured."""
        return self.marginal.level

    @property
    def depths(self) -> tuple[int, ...]:
        """Level of each axis's hierarchy, 0 where the axis is summed up."""
        return self.cross or self.marginal.depths

    @property
    def is_on_tree(self) -> bool:
        """Whether it is a level of the tree."""
        return not self.cross

    @property
    def is_total(self) -> bool:
        """Whether it is a cross table of totals of areas."""
        return self.marginal.is_whole and not self.is_on_tree

    def most_values(self, n_flows: int) -> int:
        """Largest number of values: the number of cells, or of cells in the rows of parents."""
        if self.marginal.is_whole:
            return self.cells
        return min(self.cells, n_flows * self.level.max_children)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise."""
        return self.noise.sigma

    @property
    def rho(self) -> Fraction:
        """Exact cost in zCDP."""
        return self.noise.rho(self.sensitivity.squared)

    @property
    def epsilon(self) -> Fraction:
        """Exact cost in pure differential privacy; only with Laplace noise."""
        return self.noise.epsilon(self.sensitivity.l1)

    def stated(self) -> StatedLevel:
        """As a manifest states it."""
        return StatedLevel(
            index=self.index,
            name=self.name,
            cells=self.cells,
            squared_sensitivity=self.sensitivity.squared,
            noise=StatedNoise(
                distribution=self.noise.family,
                squared_scale=str(self.noise.square),
                standard_deviation=self.noise.sigma,
            ),
            rho=str(self.rho),
        )

    def stated_table(self) -> StatedTable:
        """As a manifest states it, if it is a cross table."""
        return StatedTable(**asdict(self.stated()), depths=self.cross)
