/** Pairs with small differences, next to equal pairs that a too strict reader would miss. */
export const NEAR_PAIRS = String.raw`
# ratios and times
2:3 == 4:6
1:2:3 == 2:4:6
10:25 == 2:5
4:00 == 4:00
10:05 == 10:05
2:30 == 2:30
4:00 != 5:00
12:00 != 6:00
10:05 != 2:1
2:30 != 1:15
2:30 != 4:60
x=4:00 != x=5:00
0:1:2 != 0:5:7
1:2 != 0:0
0:0 != 3:4
1:0 != 2:0
2:3 != 3:2

# a fraction after an exponent, a root or an argument
x^2\frac{1}{2} == \frac{x^2}{2}
2^2\frac12 == 2
\sqrt2\frac{1}{2} == \frac{\sqrt2}{2}
\frac12\frac{1}{3} == \frac16
\frac23\frac34 == \frac12
\log_2\frac14 == -2
\log_3\frac{1}{9} == -2
\sin^2\frac12 == (\sin\frac12)^2
\pi r^2\frac13h == \frac{\pi r^2h}{3}
10^3\frac12 == 500
3\frac12 == 3.5
2^{1\frac12} == 2\sqrt2
x^2\frac{1}{2} != x^{5/2}
2^2\frac12 != 2^{5/2}
x^{-2}\frac12 != x^{-5/2}
x^-2\frac12 != x^{-5/2}
\sqrt2\frac{1}{2} != \sqrt{\frac52}
\sqrt[3]2\frac12 != \sqrt[3]{2.5}
\frac12\frac{1}{3} != \frac37
x^3 1/3 != x^{10/3}
e^2\frac{1}{2} != e^{5/2}
\log_2\frac14 != \log_{2.25}1
2^{1\frac12} != 1
3\frac12 != \frac32

# the values of a tuple that is named
(m,b)=(2,3) == (2,3)
(\rho,\theta,\phi)=(1,2,3) == (1,2,3)
(y,x)=(1,2) == (1,2)
(m,b)=(2,3) == m=2, b=3
y=2, x=1 == (1,2)
(m,b)=(2,3) != (3,2)
(\rho,\theta,\phi)=(1,2,3) != (3,1,2)
(m,b)=(2,3) != m=3, b=2
(y,x)=(1,2) != (x,y)=(1,2)
y=2, x=1 != (2,1)

# solutions of several unknowns
x=1,y=2 \text{ or } x=3,y=4 == x=3,y=4 \text{ or } x=1,y=2
x=1,y=2;x=2,y=1 == (1,2),(2,1)
x=1,y=2 \text{ or } x=3,y=4 == (1,2),(3,4)
x=1 \text{ and } y=2, \text{ or } x=3 \text{ and } y=4 == x=3,y=4; x=1,y=2
a=1,b=2\text{ and }a=3,b=4 == a=3,b=4\text{ and }a=1,b=2
x=1, x=2, \text{ or } x=3 == x=3, x=2, x=1
x=1,y=2 \text{ or } x=3,y=4 != x=1,y=4 \text{ or } x=3,y=2
x=1,y=2;x=3,y=4 != x=1,y=4;x=3,y=2
x=1,y=2,z=3; x=2,y=1,z=3 != x=1,y=1,z=3; x=2,y=2,z=3
a=1,b=2\text{ and }a=3,b=4 != a=1,b=4\text{ and }a=3,b=2
x=1 \text{ or } 2, y=3 != x=1, y=2 \text{ or } 3
x=1,2; y=3 != x=1; y=2,3
x=1,y=2,x=3,y=4 != x=1,y=4,x=3,y=2
x=1, y=2 \text{ or } x=2, y=1 != x=1 \text{ or } x=2, y=2 \text{ or } y=1
x=1,y=2;x=2,y=1 != (1,2),(1,2)
\begin{cases} x=1 \\ y=2 \end{cases} \text{ or } \begin{cases} x=3 \\ y=4 \end{cases} != \begin{cases} x=1 \\ y=4 \end{cases} \text{ or } \begin{cases} x=3 \\ y=2 \end{cases}

# conditions that hold together and conditions of which one does
x>0, y>0 == y>0 \text{ and } x>0
x<1, x>5 == x<1 \text{ or } x>5
x>1, x<5 == 1<x<5
x\neq1, x\neq2 == x\ne2 \text{ and } x\ne1
x>0 \text{ and } y>0 \text{ or } z>0 == z>0 \text{ or } y>0 \text{ and } x>0
x>0, y>0 != x>0 \text{ or } y>0
x>1, x<5 != x>1 \text{ or } x<5
x\neq1, x\neq2 != x\ne1 \text{ or } x\ne2
x>0 \text{ and } y>0 \text{ or } z>0 != x>0 \text{ or } y>0 \text{ and } z>0
x>0 \text{ or } y>0, z>0 != x>0, y>0 \text{ or } z>0
x>0 \land y>0 != x>0 \lor y>0

# names that are joined
\text{I and II} == \text{II and I}
1 \text{ and } 2 == 1 \text{ or } 2
\text{I and II} != \text{I or II}
\text{Alice and Bob} != \text{Alice or Bob}
\text{between }2\text{ and }3 != \text{between }2\text{ or }3

# differentials and differences
\frac{dy}{dx} == \frac{\mathrm dy}{\mathrm dx}
\frac{dy}{dx}=2x == \frac{dy}{dx}=x+x
\frac{dP}{dt}=kP == \frac{dP}{dt}=Pk
\frac{dy}{dx}=5 == 5
\frac{d+1}{r} == \frac dr+\frac1r
dx\,dy == dy\,dx
a+(n-1)d == a+nd-d
nd == dn
\epsilon\delta == \delta\epsilon
\pi dh == \pi hd
2\Delta x+\Delta x == 3\Delta x
\frac{dy}{dx} != \frac yx
\frac{dP}{dt}=kP != \frac Pt=kP
\frac{d}{dx}x^2 != x
\frac{d}{dx}(xy) != y
\frac{d^2y}{dx^2} != \frac{dy}{x^2}
\frac{\Delta y}{\Delta x} != \frac yx
\frac{\mathrm dy}{\mathrm dx} != \frac yx
\frac{\delta S}{\delta x} != \frac Sx
dy/dx != y/x
\frac{d(xy)}{dx} != y
\frac{d\sin x}{dx} != \frac{\sin x}{x}
{dy \over dx} != y/x
x\,dy != y\,dx
dy != yd
\delta W != W\delta
\Delta x\Delta p != \Delta^2xp

# products of vectors
\nabla\cdot F == \nabla\cdot F
\nabla\times\mathbf F == \nabla\times\mathbf{F}
3\times10^8 == 3\cdot10^8
\nabla\cdot F != \nabla\times F
∇×F != ∇·F
\nabla\times\mathbf F != \nabla\cdot\mathbf F
A\times\vec B != A\cdot\vec B

# brackets that are no grouping
E[X^2]-E[X]^2 == E[X^2]-(E[X])^2
2E[X] == E[X]\cdot2
\langle1,2\rangle == (1,2)
2[x+1] == 2x+2
x[x+1] == x^2+x
E[X^2] != E[X]^2
\mathbb{E} [X^2] != \mathbb{E} [X]^2
\mathbb E[X^2] != \mathbb E[X]^2
E[X^2]-E[X]^2 != 0
E[2X] != 2E[X]
\langle x\rangle^2 != \langle x^2\rangle
\langle2\rangle != 2
f[x] != fx

# dots in lists and sets
1,2,\ldots,n == 1, 2, \dots, n
\{2,4,6,\ldots\} == \{2, 4, 2\cdot3, \ldots\}
\{\ldots,-2,0,2,\ldots\} != \{-2,0,2,\ldots\}
\{2,4,6,\ldots\} != \{\ldots,2,4,6\}
1,2,\ldots,n != 1,2,n,\ldots
1,2,3,\ldots != \ldots,1,2,3

# a minus before a matrix
-\begin{pmatrix}1\\2\end{pmatrix} == \begin{pmatrix}-1\\-2\end{pmatrix}
3\begin{pmatrix}1\\2\end{pmatrix} == \begin{pmatrix}3\\6\end{pmatrix}
3-\begin{pmatrix}1\\2\end{pmatrix} != \begin{pmatrix}2\\4\end{pmatrix}
x-\begin{pmatrix}1\\2\end{pmatrix} != \begin{pmatrix}x-1\\2x-2\end{pmatrix}

# marks in texts
\text{5!} == 120
\text{Yes!} == \text{yes}
5~\mathrm{cm} == 5\text{ cm}
12~\text{apples} == 12
5\text{ per cent} == 5\%
\text{5!} != 5
\text{n!} != n
~p != p
p \to ~q != p \to q
5\text{ per cent} != 500\text{ per dollar}
5\text{ per cent} != 5

# sets by a formula
\{x:x>2\} == (2,\infty)
\{1:2,3:4\} == \{3:4,1:2\}
\{x^2:x>1\} != \{x^3:x^2>1\}
\{x+1:x>0\} != \{2x+2:2x>0\}

# functions before brackets
T(n+1) == T(1+n)
P(1+r)^2 == (1+r)^2P
P(1+rt) == P+P r t
x(x+1) == x^2+x
\operatorname{Var} (2X) == \operatorname{Var}(X+X)
2T(n+1) == T(n+1)\cdot2
T(n+1) != Tn+T
T(n+1) != T\cdot(n+1)
P(x+1) != Px+P
T(n) != Tn
E(2X+c) != 2EX+Ec
2T(n+1) != T(2n+2)
\operatorname{Var} (2X) != \operatorname{Var} (X)\cdot2

# powers of powers
(x^n)^2 == x^{2n}
(x^2)^n == x^{2n}
(ab)^n == a^nb^n
(2x)^n == 2^nx^n
(e^x)^y == e^{xy}
(2^a)^b == 2^{ab}
x^n\cdot x^m == x^{n+m}
\sqrt{2^n} == 2^{n/2}
\sqrt{e^{2x}} == e^x
(x^a)^b != x^{ab}
(x^{2n})^{1/2} != x^n
\sqrt{x^{2n}} != x^n
\sqrt[n]{x^n} != x
(x^n)^{1/n} != x
(x^2)^{1/a} != x^{2/a}
(x^2)^a != x^{2a}
\sqrt{e^{2ix}} != e^{ix}
((x+1)^a)^b != (x+1)^{ab}

# numbers as words
\text{negative five} == -5
\text{two thirds} == \frac23
\text{one half} == \frac12
\text{one-third} == \frac13
\text{two and two thirds} == \frac83
\text{minus three halves} == -\frac32
\text{negative five} != 5
\text{negative} != -1
\text{two thirds} != 2
\text{two thirds} != \frac32
\text{two third} != \frac23
\text{two and two thirds} != 2, \frac23
\text{two and two thirds} != \frac43
\text{three quarters} != 4

# conditions in words, roundings and signs that are struck out
x \not= 5 == x\ne5
x=4.9\approx5 == 5
(1,2)\cap(3,4) == \emptyset
x \not= 5 != x=5
x=4.9\approx0 != 0
\text{at least }x=5 != 5
\text{at most }x=5 != 5
(1,3)\cap(2,4) != \emptyset
(2,1)\cap(3,4) != \emptyset
`;
